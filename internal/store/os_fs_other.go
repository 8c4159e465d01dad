//go:build !linux

package store

import (
	"errors"
	"os"
)

func fallocate(*os.File, int64) error { return errors.ErrUnsupported }

func punchHole(*os.File, int64, int64) error { return errors.ErrUnsupported }

func datasync(f *os.File) error { return f.Sync() }
