//go:build unix

package gateway

import (
	"io"
	"net"
	"syscall"
)

// rawSource reads a socket so that waiting needs no buffer and a wake-up one read: most of what a
// pump costs is system calls. Not safe for concurrent use.
type rawSource struct {
	conn syscall.RawConn
	p    *pump
	read func(fd uintptr) bool // readFD, made once

	n   int
	err error
}

// newRawSource returns nil if p's source is no socket but, say, one of TLS.
func newRawSource(p *pump) *rawSource {
	socket, ok := p.src.(*net.TCPConn)
	if !ok {
		return nil
	}
	conn, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	s := &rawSource{conn: conn, p: p}
	s.read = s.readFD
	return s
}

// fill reads once into a buffer that p borrows when there is something to read.
func (s *rawSource) fill() (int, error) {
	s.n, s.err = 0, nil
	if err := s.conn.Read(s.read); err != nil {
		return 0, err
	}
	return s.n, s.err
}

// readFD reports whether the socket had something, an end or an error.
func (s *rawSource) readFD(fd uintptr) bool {
	s.p.makeRoom(busyBuffer)
	for {
		n, err := syscall.Read(int(fd), s.p.buf[s.p.end:])
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			s.p.makeRoom(idleBuffer)
			return false
		case err != nil:
			s.err = err
		case n == 0:
			s.err = io.EOF
		default:
			s.n = n
		}
		return true
	}
}
