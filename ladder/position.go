package ladder

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// header is where a message carries the position of its item.
const header = "x-ladder"

// version is that of the text in the header. A reader that does not know it parks the message.
const version = "1"

// position is where an item is on its way, and all that is needed to find the rest of it.
// 0 < at <= end, 0 < delay <= longest <= end.
type position struct {
	began   time.Time     // in whole milliseconds
	n       int           // counts the steps, 1 for the first
	at      time.Duration // when this step is due, counted from began
	delay   time.Duration // what led here, before it was cut; the next grows from it
	factor  float64       // at least 1
	longest time.Duration // delay
	end     time.Duration // the deadline, counted from began
}

func (p position) due() time.Time      { return p.began.Add(p.at) }
func (p position) deadline() time.Time { return p.began.Add(p.end) }
func (p position) isLast() bool        { return p.at == p.end }

// next is the step after p. Steps that should have been before elapsed are left out, so that who
// was away does not look many times at once. p is not the last.
func (p position) next(elapsed time.Duration) position {
	p.n++
	p.delay = p.grown()
	p.at += p.delay
	if elapsed >= p.end {
		p.at = p.end
	} else if elapsed >= p.at {
		p.at = ceil(elapsed) + p.delay
	}
	p.at = min(p.at, p.end)
	return p
}

// grown is the delay after p's.
func (p position) grown() time.Duration {
	grown := float64(p.delay.Milliseconds()) * p.factor
	if grown >= float64(p.longest.Milliseconds()) {
		return p.longest
	}
	return time.Duration(grown) * time.Millisecond
}

// String is p as the header has it: milliseconds by name, so that a human can read it, too.
func (p position) String() string {
	return fmt.Sprintf("v=%s&began=%d&n=%d&at=%d&delay=%d&factor=%s&longest=%d&end=%d", version,
		p.began.UnixMilli(), p.n, p.at.Milliseconds(), p.delay.Milliseconds(),
		strconv.FormatFloat(p.factor, 'g', -1, 64), p.longest.Milliseconds(), p.end.Milliseconds())
}

// parsePosition reads what String has written.
func parsePosition(text string) (position, error) {
	v, err := url.ParseQuery(text)
	if err != nil {
		return position{}, fmt.Errorf("read header %s: %w", header, err)
	}
	if v.Get("v") != version {
		return position{}, fmt.Errorf("read header %s: version is %q, known is %s", header, v.Get("v"), version)
	}
	var faults []error
	number := func(name string) int64 {
		n, err := strconv.ParseInt(v.Get(name), 10, 64)
		faults = append(faults, err)
		return n
	}
	millis := func(name string) time.Duration {
		n := number(name)
		if n <= 0 || n > maxDeadline.Milliseconds() {
			faults = append(faults, fmt.Errorf("%s is %d", name, n))
		}
		return time.Duration(n) * time.Millisecond
	}
	p := position{
		began: time.UnixMilli(number("began")), n: int(number("n")), at: millis("at"), delay: millis("delay"),
		longest: millis("longest"), end: millis("end"),
	}
	p.factor, err = strconv.ParseFloat(v.Get("factor"), 64)
	faults = append(faults, err)
	if p.at > p.end || p.delay > p.longest || p.longest > p.end || !(p.factor >= 1) {
		faults = append(faults, errors.New("contradicts itself"))
	}
	if err := errors.Join(faults...); err != nil {
		return position{}, fmt.Errorf("read header %s %q: %w", header, text, err)
	}
	return p, nil
}
