package duepost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// closeTimeout is how long a broker may take to say goodbye.
const closeTimeout = 3 * time.Second

// maxRefusals is how often in a row a connection that ends during the login is taken for a
// coincidence.
const maxRefusals = 3

// link is a connection that comes back by itself: a row of sessions.
//
// Role: run waits for the end of a session and makes the next. close ends and joins it.
type link struct {
	role    string // for logs and the broker's tools
	dialer  *dialer
	backoff Backoff
	log     *slog.Logger
	// prepare makes a session ready before anybody gets it. An error that is not the end of
	// the session ends it, too.
	prepare func(context.Context, *session) error

	ctx  context.Context // ends when the link is closed
	stop context.CancelFunc
	done chan struct{} // closed when run has ended

	mu      sync.Mutex
	current *session      // nil while there is none; guarded by mu
	changed chan struct{} // closed and replaced when current is set; guarded by mu
	lastErr error         // why there is none; guarded by mu
}

func newLink(role string, d *dialer, b Backoff, log *slog.Logger, prepare func(context.Context, *session) error) *link {
	ctx, stop := context.WithCancel(context.Background())
	return &link{
		role: role, dialer: d, backoff: b, log: log.With("conn", role), prepare: prepare,
		ctx: ctx, stop: stop, done: make(chan struct{}), changed: make(chan struct{}),
	}
}

// open makes the first session and starts run. After an error the link is of no use.
func (l *link) open(ctx context.Context) error {
	s, err := l.connect(ctx, maxRefusals)
	if err != nil {
		l.stop()
		close(l.done)
		return err
	}
	l.set(s, nil)
	go l.run(s)
	return nil
}

// run replaces each session that ends.
func (l *link) run(s *session) {
	defer close(l.done)
	for {
		select {
		case <-l.ctx.Done():
			s.close()
			return
		case <-s.lost:
		}
		l.log.Warn("connection lost", "err", s.reason)
		l.set(nil, s.reason)
		next, err := l.connect(l.ctx, 0)
		if err != nil {
			return // closed
		}
		l.log.Info("connected again")
		s = next
		l.set(s, nil)
	}
}

// connect makes a session and tries again after growing pauses until ctx ends. It also ends
// when the broker refuses this user, be it by ending the connection several times in a row; if
// patience is 0, it goes on all the same: what the user may do can change.
func (l *link) connect(ctx context.Context, patience int) (*session, error) {
	refusals := 0
	for try := 1; ; try++ {
		s, err := l.attempt(ctx)
		if err == nil {
			return s, nil
		}
		switch refusalOf(err) {
		case refused:
			refusals = maxRefusals
		case perhapsRefused:
			refusals++
		case notRefused:
			refusals = 0
		}
		if patience > 0 && refusals >= patience {
			return nil, err
		}
		pause := l.backoff.next(try)
		l.log.Warn("no connection", "err", err, "dur", pause)
		l.set(nil, err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, errors.Join(ErrDisconnected, err, context.Cause(ctx))
		}
	}
}

func (l *link) attempt(ctx context.Context) (*session, error) {
	conn, err := l.dialer.round(ctx, l.role)
	if err != nil {
		return nil, err
	}
	s := newSession(conn)
	if err := l.prepare(ctx, s); err != nil {
		s.close()
		return nil, fmt.Errorf("prepare connection: %w", err)
	}
	return s, nil
}

func (l *link) set(s *session, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastErr = err
	l.current = s
	if s != nil {
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

// session returns the present session and waits for one while there is none.
func (l *link) session(ctx context.Context) (*session, error) {
	for {
		l.mu.Lock()
		s, changed, lastErr := l.current, l.changed, l.lastErr
		l.mu.Unlock()
		if s != nil && !s.isLost() {
			return s, nil
		}
		select {
		case <-changed: // also if s is lost and run is about to replace it
		case <-l.ctx.Done():
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, errors.Join(ErrDisconnected, lastErr, context.Cause(ctx))
		}
	}
}

// close ends the session and run. It does not wait for anything of the broker's but the end of
// the handshake that closes a connection.
func (l *link) close() {
	l.stop()
	<-l.done
}

// session is one connection of a link, from its handshake to its end.
type session struct {
	conn *amqp.Connection
	gate *gate // shut while the broker takes no messages

	lost   chan struct{} // closed when the connection has ended
	reason error         // why; set before lost is closed
}

func newSession(conn *amqp.Connection) *session {
	s := &session{conn: conn, gate: newGate(), lost: make(chan struct{})}
	ended := conn.NotifyClose(make(chan *amqp.Error, 1))
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 1))
	go s.watch(ended, blocked)
	return s
}

// watch passes on what the broker says about the connection, until its end.
func (s *session) watch(ended chan *amqp.Error, blocked chan amqp.Blocking) {
	for {
		select {
		case b, ok := <-blocked:
			if !ok {
				blocked = nil
				continue
			}
			s.gate.set(b.Active)
		case err, ok := <-ended:
			s.reason = errors.New("closed by this client")
			if ok {
				s.reason = err
			}
			close(s.lost)
			return
		}
	}
}

func (s *session) isLost() bool {
	select {
	case <-s.lost:
		return true
	default:
		return false
	}
}

// isEnd reports whether err, of something that was done with the session, means that the session
// has ended, and waits until everybody can see that. Else err is an answer of the broker or of
// the client library, and the session goes on.
func (s *session) isEnd(ctx context.Context, err error) bool {
	var answer *amqp.Error
	if err == nil || ctx.Err() != nil || !s.conn.IsClosed() && errors.As(err, &answer) {
		return false
	}
	select {
	case <-s.lost:
	case <-ctx.Done():
	}
	return true
}

// close ends the connection, if need be without waiting for the broker's goodbye. One that has
// ended already is no error.
func (s *session) close() {
	_ = s.conn.CloseDeadline(time.Now().Add(closeTimeout))
	<-s.lost
}
