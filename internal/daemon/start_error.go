package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"

	"github.com/duepost/duepost/internal/store"
)

// StartError says which setting asks for something that is not to be had here.
type StartError struct {
	Setting string // name of the setting, such as data-dir
	Value   string // what it is set to
	Err     error
	hint    string
}

// Error names the setting, its value and the cause.
func (e *StartError) Error() string {
	return fmt.Sprintf("start broker: %s %s: %v", e.Setting, e.Value, e.Err)
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Hint says what the operator can do; it may be empty.
func (e *StartError) Hint() string { return e.hint }

// listenError explains why an address cannot be listened on.
func listenError(setting, addr string, err error) error {
	e := &StartError{Setting: setting, Value: addr, Err: err}
	var op *net.OpError
	if errors.As(err, &op) {
		e.Err = op.Err // the address is said already
	}
	var call syscall.Errno
	if errors.As(err, &call) {
		e.Err = call
	}
	switch call {
	case syscall.EADDRINUSE:
		e.hint = fmt.Sprintf("another program listens there, perhaps another broker; "+
			"stop it or choose another address with --%s HOST:PORT", setting)
	case syscall.EACCES:
		e.hint = "ports below 1024 need privileges"
	case syscall.EADDRNOTAVAIL:
		e.hint = "the host part must be an address of this machine, or empty for all"
	}
	return e
}

// storeError explains why a data directory cannot be opened.
func storeError(dir string, err error) error {
	e := &StartError{Setting: "data-dir", Value: dir, Err: err}
	switch {
	case errors.Is(err, store.ErrLocked):
		e.hint = "stop the other duepost, or choose another directory with --data-dir"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.hint = "the directory, or its parent if it does not exist, must be writable by this user"
	case errors.Is(err, syscall.ENOSPC):
		e.hint = "make room on the disk; messages can be consumed only when the broker has started"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		e.hint = "the path must lead to a directory"
	}
	return e
}
