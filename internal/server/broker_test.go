package server

import (
	"testing"

	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/delay"
	"github.com/duepost/duepost/internal/store"
)

// newTestBroker returns a broker over an empty store.
func newTestBroker(tb testing.TB) *broker.Broker {
	tb.Helper()
	return newTestBrokerOn(tb, store.OS())
}

func newTestBrokerOn(tb testing.TB, fs store.FS) *broker.Broker {
	tb.Helper()
	s, err := store.Open(fs, tb.TempDir(), store.Options{SegmentBytes: 1 << 20, Logger: testLogger(tb)})
	if err != nil {
		tb.Fatal(err)
	}
	clock := delay.SystemClock{}
	log := testLogger(tb)
	alarms := delay.NewAlarms(clock, log)
	engine := delay.New(delay.Config{Store: s, Alarms: alarms, Clock: clock, Logger: log})
	b, err := broker.Open(broker.Config{
		Store:  s,
		Engine: engine,
		Alarms: alarms,
		Clock:  clock,
		Logger: log,
	})
	if err != nil {
		tb.Fatal(err)
	}
	alarms.Start()
	engine.Start(b)
	tb.Cleanup(func() {
		engine.Stop()
		alarms.Stop()
		if err := b.Close(); err != nil {
			tb.Errorf("close broker: %v", err)
		}
		if err := s.Close(); err != nil {
			tb.Errorf("close store: %v", err)
		}
	})
	return b
}
