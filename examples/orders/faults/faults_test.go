package faults

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/duepost/duepost/dialect"
	"github.com/duepost/duepost/internal/proxy"
	"github.com/duepost/duepost/internal/testbroker"
	"github.com/duepost/duepost/internal/testdatabase"
)

// number reads an environment variable.
func number(t *testing.T, name string, standard uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return standard
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// Whatever goes wrong: no order is closed early or twice, none is forgotten, and no stock is lost or doubled.
func TestOrdersUnderFaults(t *testing.T) {
	t.Parallel()
	orders := number(t, "DUEPOST_TEST_ORDERS", 10_000)
	seed := number(t, "DUEPOST_TEST_SEED", rand.Uint64())
	t.Run("SQLite", func(t *testing.T) {
		source := "file:" + filepath.Join(t.TempDir(), "shop.db") +
			"?_pragma=busy_timeout(300)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate"
		// Whoever writes has the database for himself; the others hear that it is locked.
		away := func(t *testing.T, d time.Duration) {
			db := open(t, "sqlite", source)
			tx, err := db.Begin()
			if err != nil {
				return // somebody was faster
			}
			wait(d)
			if err := tx.Rollback(); err != nil {
				t.Errorf("give the database free: %v", err)
			}
		}
		m := &market{T: t, seed: seed, orders: orders, dialect: dialect.SQLite}
		m.play(func() *sql.DB { return open(t, "sqlite", source) }, away)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		server := testdatabase.Postgres(t)
		away := func(t *testing.T, d time.Duration) {
			server.Kill(t)
			wait(d)
			server.Start(t)
		}
		source := fmt.Sprintf("host=%s port=5432 user=postgres dbname=postgres", server.Dir)
		// It is away for as long as it takes to start, so this lasts much longer.
		m := &market{T: t, seed: seed, orders: orders / 10, dialect: dialect.Postgres}
		m.play(func() *sql.DB { return open(t, "pgx", source) }, away)
	})
}

func open(t *testing.T, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(10)
	t.Cleanup(func() { db.Close() })
	return db
}

func wait(d time.Duration) { <-time.After(d) }

// play sells to many customers with three instances of the shop under faults, and looks at what came of it.
func (m *market) play(connect func() *sql.DB, away func(*testing.T, time.Duration)) {
	t := m.T
	t.Logf("DUEPOST_TEST_SEED=%d", m.seed)
	m.db = connect()
	program, err := testbroker.BuildDuepost(t.Context(), os.Getenv("DUEPOST_TEST_PROGRAM"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	broker, err := testbroker.StartDuepost(t.Context(), program, testbroker.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := broker.Kill(); err != nil {
			t.Error(err)
		}
	})
	var links []*proxy.Proxy
	for _, ahead := range []time.Duration{0, 1500 * time.Millisecond, -1500 * time.Millisecond} {
		link := proxy.Start(t, broker.AMQPAddr)
		links = append(links, link)
		m.openShop(connect(), "amqp://guest:guest@"+link.Addr+"/", ahead)
	}
	f := &faults{m: m, broker: broker, links: links, away: away}
	stop := f.begin()
	m.sell()
	stop()
	m.settle()
	m.look()
	t.Logf("%d kills of the broker, %d cuts, %d times without database", f.kills, f.cuts.Load(), f.aways)
	if f.kills == 0 || f.cuts.Load() == 0 || f.aways == 0 {
		t.Error("there were no faults of a kind: the test has shown nothing")
	}
}

// faults are what goes wrong, in an order of which the seed decides.
type faults struct {
	m      *market
	broker *testbroker.Broker
	links  []*proxy.Proxy
	away   func(*testing.T, time.Duration)

	kills, aways int
	cuts         atomic.Int64
}

// begin lets things go wrong until the function that it returns is called, after which all is well.
func (f *faults) begin() (stop func()) {
	random := rand.New(rand.NewPCG(f.m.seed, 1))
	for _, link := range f.links {
		f.cutAtRandom(link, rand.New(rand.NewPCG(f.m.seed, random.Uint64())))
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-time.After(time.Duration(500+random.IntN(1500)) * time.Millisecond):
			}
			f.one(random)
		}
	}()
	return func() {
		close(end)
		<-ended
		for _, link := range f.links {
			link.Judge(nil)
		}
	}
}

// one fault.
func (f *faults) one(random *rand.Rand) {
	pause := time.Duration(random.IntN(1000)) * time.Millisecond
	switch random.IntN(3) {
	case 0:
		if err := f.broker.Kill(); err != nil {
			f.m.Error(err)
		}
		wait(pause)
		if err := f.broker.Start(f.m.Context()); err != nil {
			f.m.Error(err)
		}
		f.kills++
	case 1:
		f.away(f.m.T, pause)
		f.aways++
	case 2:
		link := f.links[random.IntN(len(f.links))]
		link.Down()
		wait(pause)
		link.Up()
		f.cuts.Add(1)
	}
}

// cutAtRandom ends a connection now and then in the middle of a frame, or before it.
func (f *faults) cutAtRandom(link *proxy.Proxy, random *rand.Rand) {
	const oneIn = 4000
	link.Judge(func(proxy.Direction, proxy.Frame) proxy.Verdict {
		switch random.IntN(oneIn) {
		case 0:
			f.cuts.Add(1)
			return proxy.Cut
		case 1:
			f.cuts.Add(1)
			return proxy.Tear
		}
		return proxy.Pass
	})
}
