package duepost

import "context"

// Client is a connection to a broker that comes back by itself. Made by Connect; its methods may
// be called concurrently.
type Client struct{}

// Connect returns a client that is connected. It tries all addresses until ctx ends, or for
// [Options.ConnectTimeout] if ctx has no deadline; refused credentials end it at once.
//
// When the connection is lost later, the client connects again with growing pauses for as long
// as it is open, declares again what was declared through it, and resumes its consumers.
func Connect(ctx context.Context, o Options) (*Client, error) { return nil, ErrNotSupported }

// Close takes no more publishes, lets handlers return and confirms come for at most
// [Options.DrainTimeout], and closes the connections. What has no confirm by then ends with
// [ErrUnconfirmed]. A second call waits for the first.
func (c *Client) Close() error { return nil }
