package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// A run file that the log does not tell of was never finished: a crash came first,
// and all that is in it waits elsewhere. But where the log is damaged it may be that
// what told of it is lost. Then it is served, from as far as the log knows; some of
// what is in it may have ended. The same goes for a run that is older than the log.

// adopt makes known what may be needed of the runs that the log does not tell of,
// and sees to it that no entry waits twice.
func (s *rebuild) adopt(damages []Damage, oldest LSN) error {
	lost := slices.ContainsFunc(damages, func(d Damage) bool { return d.Control })
	var adopted []*run
	for _, id := range slices.Sorted(maps.Keys(s.candidates)) {
		c := s.candidates[id]
		if c.run == nil || s.known[id] || s.gone[id] {
			continue
		}
		older := c.run.born > 0 && c.run.born < oldest && len(c.damages) == 0
		if !lost && !older {
			continue
		}
		s.known[id] = true
		st := &c.run.state
		st.stop = c.run.end
		st.done = min(max(st.done, segmentHeaderBytes/8), st.stop)
		adopted = append(adopted, c.run)
		s.damages = append(s.damages, Damage{
			File: c.run.name, Reason: "the log does not tell of this run any more; it is served", Control: true,
		})
	}
	if !lost && len(adopted) == 0 {
		return nil
	}
	return s.separate(adopted)
}

// separate leaves each entry in one place: what is fresh and in a run in the run,
// what is in several runs in one that was not adopted, or the first that was.
func (s *rebuild) separate(adopted []*run) error {
	var runs []*lookUp
	for _, id := range slices.Sorted(maps.Keys(s.candidates)) {
		if r := s.run(id); r != nil && s.known[id] {
			runs = append(runs, &lookUp{run: r, log: s.log})
		}
	}
	for _, f := range s.index.fresh {
		if err := forgetTwice(f, runs); err != nil {
			return err
		}
	}
	slices.SortStableFunc(runs, func(a, b *lookUp) int {
		return cmp.Compare(slices.Index(adopted, a.run), slices.Index(adopted, b.run)) // -1 first
	})
	for i, c := range runs {
		if slices.Contains(adopted, c.run) {
			if err := c.count(runs[:i]); err != nil {
				return err
			}
		}
	}
	for _, c := range runs {
		if err := c.claim(s); err != nil {
			return err
		}
	}
	return nil
}

// claim claims the large bodies of what waits in a run: what the log said of them
// may be lost.
func (c *lookUp) claim(s *rebuild) error {
	r, v := c.run, &s.view
	for n := max(0, r.blockOf(r.state.done)); n < len(r.blocks); n++ {
		if err := c.load(n); err != nil {
			return err
		}
		for i := range c.image.records {
			f := &c.image.records[i]
			at := int64(f.off-c.image.off) * 8
			rec := c.image.buf[at : at+int64(f.length)]
			if rec[13]&flagLarge == 0 || !r.isPending(f) || !parseMessage(rec, v) {
				continue
			}
			if _, known := s.large.waiting[f.key.Seq]; !known {
				s.large.waiting[f.key.Seq] = claimedBody{claimRecord: claimRecord{f.key.Seq, f.exchange, v.Large}}
				s.bodies.rescued = append(s.bodies.rescued, f.key.Seq)
			}
		}
	}
	return nil
}

// forgetTwice forgets the entries of a segment that wait in a run, too.
func forgetTwice(f *fresh, runs []*lookUp) error {
	var keys []Key
	f.each(func(seq uint64, e entry) { keys = append(keys, Key{e.due, seq}) })
	slices.SortFunc(keys, Key.compare)
	for _, k := range keys {
		twice, err := waitsInAny(runs, k)
		if err != nil {
			return err
		}
		if twice {
			f.forget(k.Seq, f.get(k.Seq))
		}
	}
	return nil
}

func waitsInAny(runs []*lookUp, k Key) (bool, error) {
	for _, c := range runs {
		if ok, err := c.waits(k); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// lookUp finds keys in a run. It is quick if they ascend.
type lookUp struct {
	run   *run
	log   *log
	image image
	read  bool // anything is in image
}

func (c *lookUp) load(number int) error {
	if c.read && c.image.number == number {
		return nil
	}
	c.read = true
	if err := c.run.read(&c.image, number, c.log, func(int64, int64) {}); err != nil {
		return fmt.Errorf("open run: %w", err)
	}
	return nil
}

func (c *lookUp) waits(k Key) (bool, error) {
	number := c.run.blockFor(k)
	if number < 0 {
		return false, nil
	}
	if err := c.load(number); err != nil {
		return false, err
	}
	i, ok := slices.BinarySearchFunc(c.image.records, k, func(f found, k Key) int { return f.key.compare(k) })
	return ok && c.run.isPending(&c.image.records[i]), nil
}

// isPending reports whether a record counts as waiting, as recovery sees it.
func (r *run) isPending(f *found) bool {
	return f.off >= r.state.done && f.off < r.state.stop && !r.isSkipped(f)
}

// count takes out of an adopted run what waits in others, and counts the rest.
func (c *lookUp) count(others []*lookUp) error {
	st := &c.run.state
	st.left = map[uint32]Pending{}
	for n := max(0, c.run.blockOf(st.done)); n < len(c.run.blocks); n++ {
		if err := c.load(n); err != nil {
			return err
		}
		for i := range c.image.records {
			f := &c.image.records[i]
			if !c.run.isPending(f) {
				continue
			}
			twice, err := waitsInAny(others, f.key)
			if err != nil {
				return err
			}
			if twice {
				st.cancelled = st.cancelled.with(f.ordinal)
			} else {
				st.put(f.exchange, f.length)
			}
		}
	}
	return nil
}
