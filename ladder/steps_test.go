package ladder

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDelays(t *testing.T) {
	t.Parallel()
	const m = time.Minute
	for name, c := range map[string]struct {
		steps Steps
		want  []time.Duration
	}{
		"half an hour":              {Steps{Deadline: 30 * m}, []time.Duration{m, 2 * m, 4 * m, 8 * m, 15 * m}},
		"cap":                       {Steps{Cap: 3 * m, Deadline: 10 * m}, []time.Duration{m, 2 * m, 3 * m, 3 * m, m}},
		"hit exactly":               {Steps{Deadline: 7 * m}, []time.Duration{m, 2 * m, 4 * m}},
		"even":                      {Steps{Factor: 1, Deadline: 3 * m}, []time.Duration{m, m, m}},
		"first beyond the deadline": {Steps{First: time.Hour, Deadline: m}, []time.Duration{m}},
		"first beyond the cap":      {Steps{First: 9 * m, Cap: 5 * m, Deadline: 6 * m}, []time.Duration{5 * m, m}},
		"rounded up":                {Steps{First: 1, Deadline: time.Millisecond + 1}, []time.Duration{time.Millisecond, time.Millisecond}},
		"longest":                   {Steps{First: maxDeadline, Factor: math.Inf(1), Deadline: maxDeadline}, []time.Duration{maxDeadline}},
	} {
		if got := slices.Collect(c.steps.Delays()); !cmp.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestDelaysAddUpToTheDeadline looks at many definitions by chance, and at steps that come late.
func TestDelaysAddUpToTheDeadline(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	some := func(longest time.Duration) time.Duration { // as many short ones as long ones
		return time.Duration(math.Exp(random.Float64()*math.Log(float64(longest)))) + 1
	}
	ended := 0
	for range 5000 {
		s := Steps{First: some(maxDeadline), Factor: 1 + random.ExpFloat64(), Deadline: some(maxDeadline - time.Second)}
		if random.IntN(2) == 0 {
			s.Cap = some(maxDeadline)
		}
		s = s.withDefaults()
		if err := s.check(); err != nil {
			t.Fatalf("seed %d: %+v: %v", seed, s, err)
		}
		p, sum, last := s.first(time.UnixMilli(0)), time.Duration(0), time.Duration(0)
		for range 300 { // it may be millions
			delay := p.at - sum
			sum += delay
			switch {
			case delay <= 0 || sum > s.Deadline:
				t.Fatalf("seed %d: %+v: step %d at %v after a delay of %v", seed, s, p.n, sum, delay)
			case delay > s.Cap:
				t.Fatalf("seed %d: %+v: delay %v is beyond the cap", seed, s, delay)
			case delay < last && !p.isLast():
				t.Fatalf("seed %d: %+v: delay %v after %v", seed, s, delay, last)
			}
			again, err := parsePosition(p.String())
			if err != nil || again != p {
				t.Fatalf("seed %d: read %s: got %+v, %v, want %+v", seed, p, again, err, p)
			}
			late := p.at + some(s.Deadline)
			if !p.isLast() {
				if n := p.next(late); n.at > s.Deadline || n.at <= late && !n.isLast() {
					t.Fatalf("seed %d: %+v: after %v comes %+v", seed, s, late, n)
				}
			}
			if p.isLast() {
				ended++
				if sum != s.Deadline {
					t.Fatalf("seed %d: %+v: the last step is at %v", seed, s, sum)
				}
				break
			}
			last, p = delay, p.next(sum)
		}
	}
	if ended < 1000 {
		t.Errorf("seed %d: only %d of 5000 came to their end", seed, ended)
	}
}

func TestDefinitionsThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, s := range []Steps{
		{}, {Deadline: -1}, {Deadline: math.MaxInt64}, {First: -1, Deadline: 1}, {Factor: 0.9, Deadline: 1},
		{Factor: math.NaN(), Deadline: 1}, {Cap: -1, Deadline: 1},
	} {
		if s.withDefaults().check() == nil {
			t.Errorf("%+v: got nil, want an error", s)
		}
	}
}

// FuzzPosition: what the header holds can come from anywhere.
func FuzzPosition(f *testing.F) {
	f.Add(Steps{Deadline: time.Hour}.withDefaults().first(time.UnixMilli(1)).String())
	f.Add("v=2")
	f.Add("v=1&began=1&n=1&at=2&delay=1&factor=NaN&longest=1&end=1")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePosition(text)
		if err != nil || p.isLast() {
			return
		}
		n := p.next(p.at)
		if n.at <= p.at || n.at > p.end || n.delay > p.longest {
			t.Errorf("after %s comes %s", p, n)
		}
		if again, err := parsePosition(n.String()); err != nil || again != n {
			t.Errorf("read %s: got %+v, %v", n, again, err)
		}
	})
}
