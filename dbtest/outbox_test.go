package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/outbox"
)

func testOutbox(t *testing.T, e *engine) {
	run(t, e, map[string]func(*testing.T, *engine){
		"no commit, no message":                 testRollback,
		"messages come as they were added":      testWholeMessage,
		"a delay counts from adding":            testDelayCounts,
		"what cannot be right is refused":       testRefused,
		"relays share the work":                 testShare,
		"a lane keeps its order":                testLane,
		"keys keep their order":                 testKeyLane,
		"killed between publish and mark":       testKilledBeforeMark,
		"a slow relay does not undo a mark":     testSlowRelay,
		"a confirm is marked when all ends":     testMarkedAtTheEnd,
		"a broker that is away parks nothing":   testBrokerAway,
		"a poisoned message is parked":          testPark,
		"what is hopeless is parked at once":    testHopeless,
		"old rows go":                           testPurgeRows,
		"the relay runs until its context ends": testRelayRuns,
	})
}

// fakePublisher keeps what is published. fail decides which are refused; nil none.
type fakePublisher struct {
	mu       sync.Mutex
	messages []duepost.Message
	fail     func(duepost.Message) error
	told     chan duepost.Message // if not nil
}

func (p *fakePublisher) Publish(ctx context.Context, m duepost.Message) (duepost.Receipt, error) {
	p.mu.Lock()
	if p.fail != nil {
		if err := p.fail(m); err != nil {
			p.mu.Unlock()
			return duepost.Receipt{}, err
		}
	}
	p.messages = append(p.messages, m)
	p.mu.Unlock()
	if p.told != nil {
		select {
		case p.told <- m:
		case <-ctx.Done():
			return duepost.Receipt{}, ctx.Err()
		}
	}
	return duepost.Receipt{MessageID: m.MessageID}, nil
}

func (p *fakePublisher) bodies() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.messages {
		all = append(all, string(m.Body))
	}
	return all
}

func newOutbox(t *testing.T, e *engine, db *sql.DB, o outbox.Options) *outbox.Outbox {
	t.Helper()
	box, err := outbox.New(db, e.dialect, o)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// add adds messages, each in a transaction of its own.
func add(t *testing.T, db *sql.DB, box *outbox.Outbox, messages ...duepost.Message) (ids []string) {
	t.Helper()
	for _, m := range messages {
		ids = append(ids, addIn(t, db, box, "", m))
	}
	return ids
}

func addIn(t *testing.T, db *sql.DB, box *outbox.Outbox, lane string, m duepost.Message) string {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var id string
	if lane == "" {
		id, err = box.Add(t.Context(), tx, m)
	} else {
		id, err = box.AddOrdered(t.Context(), tx, lane, m)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// relay relays one batch without an error.
func relay(t *testing.T, box *outbox.Outbox, p outbox.Publisher) int {
	t.Helper()
	n, err := box.RelayOnce(t.Context(), p)
	if err != nil {
		t.Errorf("relay: %v", err)
	}
	return n
}

// leaseEnds lets the leases and pauses of all rows be over.
func leaseEnds(t *testing.T, db *sql.DB) {
	t.Helper()
	must(t, db, "UPDATE duepost_outbox SET ready_at = ready_at - 3600000 WHERE state = 0")
}

func body(format string, a ...any) duepost.Message {
	return duepost.Message{RoutingKey: "q", Body: fmt.Appendf(nil, format, a...)}
}

func testRollback(t *testing.T, e *engine) {
	db := e.open(t)
	box := newOutbox(t, e, db, outbox.Options{})
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := box.Add(t.Context(), tx, body("gone")); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	add(t, db, box, body("stays"))
	var p fakePublisher
	if n := relay(t, box, &p); n != 1 || p.bodies()[0] != "stays" {
		t.Errorf("published %v, want the committed one", p.bodies())
	}
	if n := relay(t, box, &p); n != 0 {
		t.Errorf("second round: got %d rows, want none", n)
	}
	wantNumber(t, db, 1, "SELECT COUNT(*) FROM duepost_outbox WHERE state = 1")
}

func testWholeMessage(t *testing.T, e *engine) {
	db := e.open(t)
	box := newOutbox(t, e, db, outbox.Options{})
	at := time.Date(2030, 1, 2, 3, 4, 5, 678000000, time.UTC)
	want := duepost.Message{
		Exchange: "orders", RoutingKey: "a.b", Body: []byte{0, 255, 'x'}, At: at, Key: "k 1",
		Headers: map[string]any{
			"nil": nil, "true": true, "i": int(-1), "i8": int8(-8), "i16": int16(-16), "i32": int32(-32), "i64": int64(math.MinInt64),
			"u8": uint8(8), "u16": uint16(16), "u32": uint32(math.MaxUint32), "f32": float32(1.5), "f64": math.Pi,
			"s": "Ärger", "raw": "\xff\x00", "bytes": []byte{0, 1}, "time": at, "empty": "",
			"list": []any{int64(1), "two", []any{}}, "table": map[string]any{"in": map[string]any{"n": int32(1)}},
		},
		MessageID: "id", CorrelationID: "c", ReplyTo: "r", ContentType: "t", ContentEncoding: "e", Type: "y", AppID: "a",
		Timestamp: at, Priority: 9, Expiration: time.Minute, Transient: true, DropUnroutable: true,
	}
	add(t, db, box, want, duepost.Message{RoutingKey: "bare"})
	var p fakePublisher
	relay(t, box, &p)
	if len(p.messages) != 2 {
		t.Fatalf("got %d messages, want 2", len(p.messages))
	}
	got, bare := p.messages[0], p.messages[1]
	if got.RoutingKey == "bare" {
		got, bare = bare, got
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("message changed (-added +published):\n%s", diff)
	}
	if bare.MessageID == "" || bare.Timestamp.IsZero() || !bare.At.IsZero() || len(bare.Body) != 0 {
		t.Errorf("bare message: got %+v, want an id and a timestamp, no due instant", bare)
	}
}

// The process's clock is wrong by years, and the relay comes late.
func testDelayCounts(t *testing.T, e *engine) {
	db := e.open(t)
	now := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	box := newOutbox(t, e, db, outbox.Options{Now: func() time.Time { return now }})
	added := now
	m := body("later")
	m.Delay = time.Hour
	add(t, db, box, m)
	now = now.Add(40 * time.Minute)
	var p fakePublisher
	if n := relay(t, box, &p); n != 1 {
		t.Fatalf("got %d rows, want 1: the broker delays, not the outbox", n)
	}
	if got := p.messages[0]; got.Delay != 0 || !got.At.Equal(added.Add(time.Hour)) {
		t.Errorf("got delay %v, at %v, want at %v", got.Delay, got.At, added.Add(time.Hour))
	}
}

func testRefused(t *testing.T, e *engine) {
	db := e.open(t)
	box := newOutbox(t, e, db, outbox.Options{})
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for name, m := range map[string]duepost.Message{
		"negative delay": {Delay: -1}, "delay and at": {Delay: 1, At: time.Unix(1, 0)},
		"header": {Headers: map[string]any{"x": struct{}{}}}, "text": {RoutingKey: "\xff"},
	} {
		if _, err := box.Add(t.Context(), tx, m); !errors.Is(err, duepost.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	if _, err := box.Add(t.Context(), db, body("x")); !errors.Is(err, duepost.ErrInvalid) {
		t.Errorf("no transaction: got %v, want ErrInvalid", err)
	}
	if _, err := box.AddOrdered(t.Context(), tx, "", body("x")); !errors.Is(err, duepost.ErrInvalid) {
		t.Errorf("no lane: got %v, want ErrInvalid", err)
	}
}

func testShare(t *testing.T, e *engine) {
	const rows, relays = 120, 3
	db := e.open(t)
	box := newOutbox(t, e, db, outbox.Options{})
	for i := range rows {
		add(t, db, box, body("%d", i))
	}
	var p fakePublisher
	var all sync.WaitGroup
	for range relays {
		mine := newOutbox(t, e, db, outbox.Options{Batch: 10})
		all.Go(func() {
			for relay(t, mine, &p) > 0 {
			}
		})
	}
	all.Wait()
	for relay(t, box, &p) > 0 { // what the others passed over while it was locked
	}
	seen := map[string]int{}
	for _, b := range p.bodies() {
		seen[b]++
	}
	if len(seen) != rows || len(p.messages) != rows {
		t.Errorf("published %d different of %d messages in all, want %d of each", len(seen), len(p.messages), rows)
	}
}

func testLane(t *testing.T, e *engine) {
	const rows = 12
	db := e.open(t)
	box := newOutbox(t, e, db, outbox.Options{Batch: 5})
	for i := range rows {
		for _, lane := range []string{"a", "b"} {
			addIn(t, db, box, lane, duepost.Message{RoutingKey: lane, Body: fmt.Appendf(nil, "%d", i)})
		}
	}
	// The first of a is at fault once; its followers must wait for it.
	failures := 0
	p := fakePublisher{fail: func(m duepost.Message) error {
		if m.RoutingKey == "a" && string(m.Body) == "0" && failures == 0 {
			failures++
			return duepost.ErrUnroutable
		}
		return nil
	}}
	var all sync.WaitGroup
	for range 2 {
		mine := newOutbox(t, e, db, outbox.Options{Batch: 5})
		all.Go(func() {
			for relay(t, mine, &p) > 0 {
			}
		})
	}
	all.Wait()
	for _, m := range p.messages {
		if m.RoutingKey == "a" {
			t.Errorf("message %s of lane a overtook its first", m.Body)
		}
	}
	leaseEnds(t, db)
	for relay(t, box, &p) > 0 {
	}
	next := map[string]int{}
	for _, m := range p.messages {
		if got := string(m.Body); got != fmt.Sprint(next[m.RoutingKey]) {
			t.Errorf("lane %s: got message %s, want %d", m.RoutingKey, got, next[m.RoutingKey])
		}
		next[m.RoutingKey]++
	}
	if next["a"] != rows || next["b"] != rows {
		t.Errorf("published %v, want %d of each lane", next, rows)
	}
}

// The last message of a key is the one that counts at the broker.
func testKeyLane(t *testing.T, e *engine) {
	db := e.open(t)
	box := newOutbox(t, e, db, outbox.Options{})
	for i := range 3 {
		m := body("%d", i)
		m.Key = "user 5"
		add(t, db, box, m)
	}
	var p fakePublisher
	for i := range 3 {
		if n := relay(t, box, &p); n != 1 {
			t.Errorf("round %d: got %d rows, want one at a time", i, n)
		}
	}
	if diff := cmp.Diff([]string{"0", "1", "2"}, p.bodies()); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// A relay loses its database when it has published and not yet marked: the same message comes
// again, under the same id, but not before the lease ends.
func testKilledBeforeMark(t *testing.T, e *engine) {
	db := e.open(t)
	box := newOutbox(t, e, db, outbox.Options{})
	id := add(t, db, box, body("x"))[0]
	lost := e.again(t, db)
	p := fakePublisher{fail: func(duepost.Message) error { lost.Close(); return nil }}
	if _, err := newOutbox(t, e, lost, outbox.Options{}).RelayOnce(t.Context(), &p); err == nil {
		t.Error("database is gone: got nil, want an error")
	}
	if n := relay(t, box, &p); n != 0 {
		t.Errorf("within the lease: got %d rows, want none", n)
	}
	leaseEnds(t, db)
	if n := relay(t, box, &p); n != 1 {
		t.Errorf("after the lease: got %d rows, want 1", n)
	}
	if len(p.messages) != 2 || p.messages[0].MessageID != id || p.messages[1].MessageID != id {
		t.Errorf("got %+v, want the same message twice", p.messages)
	}
	wantNumber(t, db, 1, "SELECT COUNT(*) FROM duepost_outbox WHERE state = 1")
}

// While one relay publishes, its lease ends and another publishes and marks the row. What the
// slow one then has to say of its failure no longer counts.
func testSlowRelay(t *testing.T, e *engine) {
	for name, fault := range map[string]error{"away": duepost.ErrDisconnected, "parked": duepost.ErrInvalid} {
		db := e.open(t)
		box := newOutbox(t, e, db, outbox.Options{})
		add(t, db, box, body("x"))
		var other fakePublisher
		slow := fakePublisher{fail: func(duepost.Message) error {
			leaseEnds(t, db)
			relay(t, newOutbox(t, e, db, outbox.Options{}), &other)
			return fault
		}}
		_, _ = box.RelayOnce(t.Context(), &slow)
		wantNumber(t, db, 1, "SELECT COUNT(*) FROM duepost_outbox WHERE state = 1")

		// And one that only holds the row is not disturbed either.
		add(t, db, box, body("y"))
		slow.fail = func(duepost.Message) error {
			leaseEnds(t, db)
			held := fakePublisher{fail: func(duepost.Message) error { return nil }}
			gone := e.again(t, db)
			held.fail = func(duepost.Message) error { gone.Close(); return nil }
			_, _ = newOutbox(t, e, gone, outbox.Options{}).RelayOnce(t.Context(), &held)
			return fault
		}
		_, _ = box.RelayOnce(t.Context(), &slow)
		if n := relay(t, box, &other); n != 0 {
			t.Errorf("%s: a row that another holds was taken", name)
		}
		wantNumber(t, db, 1, "SELECT COUNT(*) FROM duepost_outbox WHERE state = 0")
	}
}

// The context ends when the broker has just confirmed.
func testMarkedAtTheEnd(t *testing.T, e *engine) {
	db := e.open(t)
	box := newOutbox(t, e, db, outbox.Options{})
	add(t, db, box, body("x"))
	ctx, cancel := context.WithCancel(t.Context())
	p := fakePublisher{fail: func(duepost.Message) error { cancel(); return nil }}
	if _, err := box.RelayOnce(ctx, &p); err != nil {
		t.Errorf("relay: %v", err)
	}
	wantNumber(t, db, 1, "SELECT COUNT(*) FROM duepost_outbox WHERE state = 1")
}

func testBrokerAway(t *testing.T, e *engine) {
	db := e.open(t)
	box := newOutbox(t, e, db, outbox.Options{Attempts: 1})
	add(t, db, box, body("a"), body("b"))
	for _, away := range []error{
		duepost.ErrDisconnected, duepost.ErrUnconfirmed, duepost.ErrBlocked, duepost.ErrRefused,
		duepost.ErrClosed, context.DeadlineExceeded,
	} {
		p := fakePublisher{fail: func(duepost.Message) error { return away }}
		if n, err := box.RelayOnce(t.Context(), &p); n != 2 || !errors.Is(err, away) {
			t.Errorf("got %d rows, %v, want 2 rows and %v", n, err, away)
		}
	}
	var p fakePublisher
	if n := relay(t, box, &p); n != 2 || len(p.messages) != 2 {
		t.Errorf("when it is back: got %d rows, want both at once", n)
	}
}

func testPark(t *testing.T, e *engine) {
	db := e.open(t)
	box := newOutbox(t, e, db, outbox.Options{Attempts: 3})
	add(t, db, box, body("bad"), body("good"))
	p := fakePublisher{fail: func(m duepost.Message) error {
		if string(m.Body) == "bad" {
			return duepost.ErrUnroutable
		}
		return nil
	}}
	for i := range 3 {
		if n := relay(t, box, &p); i == 0 && n != 2 || i > 0 && n != 1 {
			t.Errorf("round %d: got %d rows", i, n)
		}
		if i < 2 {
			if n := relay(t, box, &p); n != 0 {
				t.Errorf("round %d: a message at fault came again without a pause", i)
			}
		}
		leaseEnds(t, db)
	}
	parked, err := box.Parked(t.Context(), 10)
	if err != nil || len(parked) != 1 {
		t.Fatalf("parked: got %v, %v, want one", parked, err)
	}
	if got := parked[0]; string(got.Message.Body) != "bad" || got.Attempts != 3 || got.Error != "unroutable" ||
		time.Since(got.Time).Abs() > time.Minute {
		t.Errorf("parked: got %+v", got)
	}
	if stats, err := box.Stats(t.Context()); err != nil || stats.Pending != 0 || stats.Parked != 1 {
		t.Errorf("stats: got %+v, %v, want one parked", stats, err)
	}
	if n, err := box.Purge(t.Context()); n != 0 || err != nil {
		t.Errorf("purge: got %d, %v, want that what is parked stays", n, err)
	}
	p.fail = nil
	if n, err := box.Retry(t.Context(), parked[0].ID, 999); n != 1 || err != nil {
		t.Errorf("retry: got %d, %v, want 1", n, err)
	}
	if n := relay(t, box, &p); n != 1 {
		t.Errorf("after retry: got %d rows, want 1", n)
	}
}

func testHopeless(t *testing.T, e *engine) {
	db := e.open(t)
	box := newOutbox(t, e, db, outbox.Options{})
	add(t, db, box, body("x"), body("y"))
	must(t, db, "UPDATE duepost_outbox SET message = 'no JSON' WHERE id = (SELECT id FROM (SELECT MIN(id) AS id FROM duepost_outbox) AS x)")
	p := fakePublisher{fail: func(duepost.Message) error { return duepost.ErrTooLarge }}
	relay(t, box, &p)
	parked, err := box.Parked(t.Context(), 10)
	if err != nil || len(parked) != 2 {
		t.Errorf("parked: got %d, %v, want both", len(parked), err)
	}
}

func testPurgeRows(t *testing.T, e *engine) {
	db := e.open(t)
	box := newOutbox(t, e, db, outbox.Options{Keep: time.Hour})
	add(t, db, box, body("0"), body("1"))
	var p fakePublisher
	relay(t, box, &p)
	add(t, db, box, body("2"))
	must(t, db, "UPDATE duepost_outbox SET changed_at = changed_at - 3480000")
	if n, err := box.Purge(t.Context()); n != 0 || err != nil {
		t.Errorf("within the hour: got %d, %v, want 0", n, err)
	}
	must(t, db, "UPDATE duepost_outbox SET changed_at = changed_at - 240000")
	if n, err := box.Purge(t.Context()); n != 2 || err != nil {
		t.Errorf("after an hour: got %d, %v, want the two that are published", n, err)
	}
	if stats, err := box.Stats(t.Context()); err != nil || stats.Pending != 1 || stats.Oldest < time.Hour {
		t.Errorf("stats: got %+v, %v, want one pending for over an hour", stats, err)
	}
}

func testRelayRuns(t *testing.T, e *engine) {
	db := e.open(t)
	box := newOutbox(t, e, db, outbox.Options{Interval: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	p := fakePublisher{told: make(chan duepost.Message)}
	ended := make(chan error)
	go func() { ended <- box.Relay(ctx, &p) }()
	for i := range 3 { // an hour would pass between them if nobody woke the relay
		add(t, db, box, body("%d", i))
		box.Wake()
		if got := <-p.told; string(got.Body) != fmt.Sprint(i) {
			t.Errorf("got %s, want %d", got.Body, i)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("relay: got %v, want nil when its context ends", err)
	}
	wantNumber(t, db, 3, "SELECT COUNT(*) FROM duepost_outbox WHERE state = 1")
}
