//go:build !linux

package main

import (
	"context"
	"errors"
)

// runInNamespace never enters: only Linux has network namespaces.
func runInNamespace(context.Context, []string) (entered bool, err error) {
	return false, errors.ErrUnsupported
}

// raiseLoopback has nothing to do.
func raiseLoopback() error { return nil }
