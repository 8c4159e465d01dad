package duepost

import (
	"maps"
	"sync"
	"sync/atomic"
)

// nameSet is a set that is read for every message and hardly ever changed. A look-up takes no
// lock and no memory. The zero value is empty.
type nameSet struct {
	mu    sync.Mutex // held by writers
	names atomic.Pointer[map[string]struct{}]
}

func (s *nameSet) has(name string) bool {
	names := s.names.Load()
	if names == nil {
		return false
	}
	_, ok := (*names)[name]
	return ok
}

func (s *nameSet) add(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]struct{}{name: {}}
	if old := s.names.Load(); old != nil {
		maps.Copy(names, *old)
	}
	s.names.Store(&names)
}

func (s *nameSet) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names.Store(nil)
}
