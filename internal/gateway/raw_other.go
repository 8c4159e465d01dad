//go:build !unix

package gateway

// rawSource is for systems whose sockets can be read without waiting.
type rawSource struct{}

func newRawSource(*pump) *rawSource { return nil }

func (*rawSource) fill() (int, error) { return 0, nil }
