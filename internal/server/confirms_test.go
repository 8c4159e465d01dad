package server

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost/internal/store"
	"github.com/duepost/duepost/internal/wire"
)

// fakeCommits is a store's commits by hand.
type fakeCommits struct {
	durable store.LSN
	waiting map[store.Waiter]store.LSN
}

func (f *fakeCommits) Notify(lsn store.LSN, w store.Waiter) {
	if lsn <= f.durable {
		w.Committed(f.durable, nil)
		return
	}
	if _, ok := f.waiting[w]; ok {
		panic("second registration of one connection")
	}
	if f.waiting == nil {
		f.waiting = map[store.Waiter]store.LSN{}
	}
	f.waiting[w] = lsn
}

func (f *fakeCommits) commit(durable store.LSN) {
	f.durable = durable
	for w, lsn := range f.waiting {
		if lsn <= durable {
			delete(f.waiting, w)
			w.Committed(durable, nil)
		}
	}
}

func (f *fakeCommits) fail(err error) {
	for w := range f.waiting {
		delete(f.waiting, w)
		w.Committed(f.durable, err)
	}
}

type confirmsTest struct {
	t       *testing.T
	commits fakeCommits
	tally   tally
	out     *output
	confirms
}

func newConfirmsTest(t *testing.T) *confirmsTest {
	c := &confirmsTest{t: t, out: newOutput(nil, 1<<20, 0)}
	c.confirms = confirms{out: c.out, store: &c.commits, tally: &c.tally}
	return c
}

// expect compares what was sent since the last call with lines such as "ack 3
// multiple".
func (c *confirmsTest) expect(want ...string) {
	c.t.Helper()
	c.out.mu.Lock()
	rd := wire.NewReader(bytes.NewReader(slices.Clone(c.out.buf)), 0)
	c.out.buf = nil
	c.out.mu.Unlock()
	var got []string
	for {
		f, err := rd.Next()
		if err != nil {
			break
		}
		m, err := wire.Parse(f.Payload)
		if err != nil {
			c.t.Fatal(err)
		}
		got = append(got, describe(f.Channel, m))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Errorf("confirms (-want +got):\n%s", diff)
	}
}

func describe(channel uint16, m wire.Method) string {
	tag, multiple, verb := uint64(0), false, ""
	switch m := m.(type) {
	case *wire.BasicAck:
		tag, multiple, verb = m.DeliveryTag, m.Multiple, "ack"
	case *wire.BasicNack:
		tag, multiple, verb = m.DeliveryTag, m.Multiple, "nack"
	default:
		return fmt.Sprintf("%T", m)
	}
	s := fmt.Sprintf("%d: %s %d", channel, verb, tag)
	if multiple {
		s += " multiple"
	}
	return s
}

func TestConfirmsWaitForTheCommit(t *testing.T) {
	t.Parallel()
	c := newConfirmsTest(t)
	k := &confirmer{number: 1}
	k.record(10, false)
	k.record(11, false)
	c.flush(k)
	c.expect()
	k.record(12, false)
	c.flush(k)
	c.commits.commit(10)
	c.expect()
	c.commits.commit(11)
	c.expect("1: ack 2 multiple")
	c.commits.commit(20)
	c.expect("1: ack 3")
}

func TestConfirmsOfSeveralCommitsInOneAck(t *testing.T) {
	t.Parallel()
	c := newConfirmsTest(t)
	k := &confirmer{number: 7}
	for lsn := range 5 {
		k.record(store.LSN(10+lsn), false)
		c.flush(k)
	}
	c.commits.commit(13)
	c.expect("7: ack 4 multiple")
	c.commits.commit(14)
	c.expect("7: ack 5")
}

func TestConfirmsOfTransientMessagesAreImmediate(t *testing.T) {
	t.Parallel()
	c := newConfirmsTest(t)
	k := &confirmer{number: 1}
	k.record(0, false)
	c.flush(k)
	c.expect("1: ack 1")
	k.record(0, false)
	k.record(0, false)
	c.flush(k)
	c.expect("1: ack 3 multiple")
}

func TestConfirmsLeaveInOrderOfPublishes(t *testing.T) {
	t.Parallel()
	c := newConfirmsTest(t)
	k := &confirmer{number: 1}
	k.record(10, false)
	c.flush(k)
	k.record(0, false) // transient, behind a persistent one
	c.flush(k)
	k.record(0, true) // refused by a full queue
	c.flush(k)
	k.record(0, false)
	c.flush(k)
	c.expect()
	c.commits.commit(10)
	c.expect("1: ack 2 multiple", "1: nack 3", "1: ack 4")
	if n := c.tally.confirmed.Load(); n != 3 {
		t.Errorf("confirmed = %d, want 3", n)
	}
	if n := c.tally.nacked.Load(); n != 1 {
		t.Errorf("nacked = %d, want 1", n)
	}
}

func TestConfirmsAreNegativeWhenTheStoreFails(t *testing.T) {
	t.Parallel()
	c := newConfirmsTest(t)
	k := &confirmer{number: 1}
	k.record(10, false)
	k.record(11, false)
	c.flush(k)
	c.commits.fail(errors.New("disk on fire"))
	c.expect("1: nack 2 multiple")
}

func TestOneRegistrationServesAllChannels(t *testing.T) {
	t.Parallel()
	c := newConfirmsTest(t)
	k1, k2 := &confirmer{number: 1}, &confirmer{number: 2}
	k2.record(11, false)
	c.flush(k2)
	k1.record(12, false)
	c.flush(k1)
	c.commits.commit(12)
	c.expect("2: ack 1", "1: ack 1")
	k1.record(13, false)
	c.flush(k1)
	c.commits.commit(13)
	c.expect("1: ack 2")
}

func TestClosedChannelGetsNoConfirms(t *testing.T) {
	t.Parallel()
	c := newConfirmsTest(t)
	k1, k2 := &confirmer{number: 1}, &confirmer{number: 2}
	k1.record(10, false)
	c.flush(k1)
	k2.record(11, false)
	c.flush(k2)
	c.drop(k1)
	c.commits.commit(10)
	c.commits.commit(11)
	c.expect("2: ack 1")
}
