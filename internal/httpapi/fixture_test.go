package httpapi

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/auth"
	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/definitions"
	"github.com/duepost/duepost/internal/delay"
	"github.com/duepost/duepost/internal/server"
	"github.com/duepost/duepost/internal/store"
)

// fixture is the API of a broker that AMQP clients can connect to. Users are guest (administrator,
// all rights in /) and, with their names as passwords, one for each tag, with no rights anywhere.
type fixture struct {
	t *testing.T
	*API
	*Parts
	addr string // for AMQP

	user string // who asks
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	s, err := store.Open(store.OS(), t.TempDir(), store.Options{SegmentBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	clock := delay.SystemClock{}
	alarms := delay.NewAlarms(clock, nil)
	engine := delay.New(delay.Config{Store: s, Alarms: alarms, Clock: clock})
	b, err := broker.Open(broker.Config{Store: s, Engine: engine, Alarms: alarms, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	alarms.Start()
	engine.Start(b)
	users := auth.NewUsers("guest")
	srv, err := server.New(server.Config{Broker: b, Authenticator: users,
		MaxUserConnections: func(user string) int64 { return users.Limit(user, auth.MaxConnections) },
		MaxUserChannels:    func(user string) int64 { return users.Limit(user, auth.MaxChannels) },
		Rights:             func(user, vhost string) broker.Rights { return users.Rights(user, vhost) }})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := srv.Serve(ln); !errors.Is(err, server.ErrClosed) {
			t.Errorf("Serve = %v", err)
		}
	}()
	t.Cleanup(func() {
		err := srv.Close()
		engine.Stop()
		alarms.Stop()
		if err := errors.Join(err, b.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	f := &fixture{t: t, addr: ln.Addr().String(), user: "guest"}
	f.Parts = &Parts{
		Site: definitions.Site{Broker: b, Users: users, Version: "1.2.3"}, Server: srv, Node: "duepost@test",
		Began: time.Now(), Listeners: []Listener{{Protocol: "amqp", IP: "127.0.0.1", Port: 5672}},
	}
	f.API = New(Config{Health: func() Health { return Health{Status: Ready} }, Parts: func() *Parts { return f.Parts }})
	f.putUsers()
	return f
}

func (f *fixture) putUsers() {
	f.t.Helper()
	r := auth.Records{
		Users:       []auth.User{{Name: "guest", Password: auth.HashPassword("guest"), Tags: []string{auth.Administrator}}},
		Permissions: []auth.Permission{{User: "guest", VHost: "/", Configure: ".*", Write: ".*", Read: ".*"}},
	}
	for _, tag := range []string{auth.Management, auth.Policymaker, auth.Monitoring, auth.Impersonator} {
		r.Users = append(r.Users, auth.User{Name: tag, Password: auth.HashPassword(tag), Tags: []string{tag}})
	}
	if err := f.Users.Put(r); err != nil {
		f.t.Fatal(err)
	}
}

// as is the same API asked by somebody else.
func (f *fixture) as(user string) *fixture {
	other := *f
	other.user = user
	return &other
}

// do asks and returns the answer.
func (f *fixture) do(method, path, body string) *httptest.ResponseRecorder {
	f.t.Helper()
	r := httptest.NewRequest(method, "/api/"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:9"
	r.SetBasicAuth(f.user, f.user)
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

// want asks and checks code and body: what the body must hold, "" for an empty one.
func (f *fixture) want(code int, body, method, path, request string) {
	f.t.Helper()
	w := f.do(method, path, request)
	got := strings.TrimSpace(w.Body.String())
	if w.Code != code || !strings.Contains(got, body) || body == "" && got != "" {
		f.t.Errorf("%s %s %s = %d %s, want %d %s", method, path, request, w.Code, got, code, body)
	}
}

// get decodes what is at a path.
func get[T any](f *fixture, path string) (v T) {
	f.t.Helper()
	w := f.do(http.MethodGet, path, "")
	if w.Code != http.StatusOK {
		f.t.Fatalf("GET %s = %d %s", path, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		f.t.Fatalf("GET %s: %v in %s", path, err, w.Body)
	}
	return v
}

// connect makes an AMQP connection, which is closed at the end of the test.
func (f *fixture) connect(user, vhost string) *amqp.Connection {
	f.t.Helper()
	conn, err := amqp.DialConfig("amqp://"+user+":"+user+"@"+f.addr, amqp.Config{Vhost: vhost})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.Close() })
	return conn
}

// names are the values of a key in a list, with commas between.
func names(list []map[string]any, key string) string {
	var all []string
	for _, o := range list {
		name, _ := o[key].(string)
		all = append(all, name)
	}
	return strings.Join(all, ",")
}
