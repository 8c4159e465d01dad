package server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// startOutput returns an output whose writer runs, and the other end.
func startOutput(t *testing.T, high int, patience time.Duration) (o *output, peer net.Conn, ended chan error) {
	t.Helper()
	ours, theirs := net.Pipe()
	o = newOutput(ours, high, patience)
	ended = make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended <- o.run()
	}()
	t.Cleanup(func() {
		ours.Close()
		theirs.Close()
		o.finish(time.Now())
		<-done
	})
	return o, theirs, ended
}

func say(o *output, text string) bool { return o.end(append(o.begin(), text...)) }

func read(t *testing.T, c net.Conn, n int) string {
	t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatalf("read: %v", err)
	}
	return string(b)
}

func TestOutputWritesInOrderAndEnds(t *testing.T) {
	t.Parallel()
	o, peer, ended := startOutput(t, 100, time.Minute)
	say(o, "one ")
	say(o, "two ")
	o.finish(time.Now().Add(time.Minute))
	if say(o, "three") {
		t.Error("end after finish = true")
	}
	if got := read(t, peer, 8); got != "one two " {
		t.Errorf("got %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("run = %v", err)
	}
}

func TestOutputSaysNothingAfterAClose(t *testing.T) {
	t.Parallel()
	o, peer, _ := startOutput(t, 100, time.Minute)
	o.endSealed(append(o.begin(), "close"...))
	if say(o, "late") {
		t.Error("end after a close method = true")
	}
	o.endSealed(append(o.begin(), "closeok"...))
	if got := read(t, peer, 12); got != "closecloseok" {
		t.Errorf("got %q", got)
	}
}

func TestOutputGathersWhileAWriteIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, peer, _ := startOutput(t, 100, time.Minute)
		say(o, "1")
		synctest.Wait() // the writer is in Write
		for range 50 {
			say(o, "x")
		}
		if got := o.pending.Load(); got != 51 {
			t.Errorf("pending = %d, want 51", got)
		}
		read(t, peer, 1)
		b := make([]byte, 100)
		n, err := peer.Read(b)
		if n != 50 || err != nil {
			t.Errorf("second write had %d octets, %v, want all 50", n, err)
		}
		synctest.Wait()
		if got := o.pending.Load(); got != 0 {
			t.Errorf("pending = %d, want 0", got)
		}
	})
}

func TestOutputTellsWhoWasRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, peer, _ := startOutput(t, 10, time.Minute)
		drained := 0
		o.drained = func() { drained++ }
		say(o, "0123456789")
		synctest.Wait()
		if !o.full() {
			t.Error("full = false at high water")
		}
		read(t, peer, 10)
		synctest.Wait()
		if o.full() {
			t.Error("full = true after all was written")
		}
		if drained != 1 {
			t.Errorf("drained was called %d times, want once", drained)
		}
		say(o, "01234")
		read(t, peer, 5)
		synctest.Wait()
		if drained != 1 {
			t.Error("drained was called though nobody was refused")
		}
	})
}

func TestOutputGivesBackHugeBuffers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, peer, _ := startOutput(t, 100, time.Minute)
		o.end(append(o.begin(), make([]byte, 2*keepBuffer)...))
		if _, err := io.CopyN(io.Discard, peer, 2*keepBuffer); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		say(o, "x")
		read(t, peer, 1)
		synctest.Wait()
		o.mu.Lock()
		defer o.mu.Unlock()
		if cap(o.buf) > keepBuffer {
			t.Errorf("kept a buffer of %d octets", cap(o.buf))
		}
	})
}

func TestOutputCutCall(t *testing.T) {
	t.Parallel()
	t.Run("no progress ends it", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			o, _, ended := startOutput(t, 100, time.Minute)
			say(o, "stuck")
			synctest.Wait()
			o.cutCall(o.calls.Load())
			if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("run = %v, want deadline exceeded", err)
			}
			if say(o, "x") {
				t.Error("end after a failed write = true")
			}
		})
	})
	t.Run("progress does not", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			o, peer, _ := startOutput(t, 100, time.Minute)
			say(o, "slow but alive")
			synctest.Wait()
			got := bytes.NewBufferString(read(t, peer, 4))
			o.cutCall(o.calls.Load())
			synctest.Wait()
			got.WriteString(read(t, peer, 10))
			if got.String() != "slow but alive" {
				t.Errorf("got %q", got)
			}
		})
	})
	t.Run("nor a cut that comes late", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			o, peer, _ := startOutput(t, 100, time.Minute)
			calls := o.calls.Load()
			say(o, "one")
			read(t, peer, 3)
			synctest.Wait()
			o.cutCall(calls)
			say(o, "two")
			if got := read(t, peer, 3); got != "two" {
				t.Errorf("got %q", got)
			}
		})
	})
}
