//go:build gateway && unix

package gateway

import (
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/wire"
)

// Not parallel: it counts the memory of the whole process, which has both ends of each connection.
func TestThousandsOfConnections(t *testing.T) {
	const most = 24 << 10
	n := connections(t)
	s := newScripted(t)
	before := memory()
	began := time.Now()
	type pair struct{ client, broker net.Conn }
	var all []pair
	for range n {
		client, broker := s.connect(t, wire.ProtocolHeader)
		all = append(all, pair{client, broker})
	}
	took := time.Since(began)
	each := (memory() - before) / n
	t.Logf("%d connections in %v, %d octets of memory each", n, took.Round(time.Millisecond), each)
	if each > most {
		t.Errorf("each connection costs %d octets, allowed are %d", each, most)
	}
	if got := s.Stats().Connections; got != n {
		t.Errorf("got %d connections", got)
	}
	// All of them live: a heartbeat passes each way on each.
	heartbeat := wire.AppendHeartbeat(nil)
	for _, p := range all {
		for _, way := range [][2]net.Conn{{p.client, p.broker}, {p.broker, p.client}} {
			must(t, way[0].SetDeadline(time.Now().Add(20*time.Second)))
			must(t, way[1].SetDeadline(time.Now().Add(20*time.Second)))
			_, err := way[0].Write(heartbeat)
			must(t, err)
			expect(t, way[1], heartbeat)
		}
	}
	if after := (memory() - before) / n; after > most {
		t.Errorf("after a frame each way a connection costs %d octets, allowed are %d", after, most)
	}
}

// connections are ten thousand, or what the limit of open files allows: four sockets for each, the
// client's, both of the gateway, the broker's.
func connections(t *testing.T) int {
	t.Helper()
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	limit.Cur = limit.Max
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	return int(min(10_000, (limit.Cur-500)/4))
}

// memory is what the heap and the stacks have in use.
func memory() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapInuse + m.StackInuse)
}
