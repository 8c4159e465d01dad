package daemon

import (
	"net"
	"os"

	"github.com/duepost/duepost/internal/httpapi"
)

// parts is what the management API works on; nil before and after clients are served.
func (d *Daemon) parts() *httpapi.Parts {
	if d.phase.Load().Status != httpapi.Ready {
		return nil
	}
	// Ready was set after the parts were, so they can be read here.
	return &httpapi.Parts{
		Site: d.site(), Server: d.server,
		Node: d.node, Began: d.began, Listeners: d.ports.listeners(),
	}
}

// nodeName is what tools know this broker by, in the form of RabbitMQ's names.
func nodeName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return "duepost@" + host
}

// listeners are the ports by RabbitMQ's names of protocols.
func (p *ports) listeners() []httpapi.Listener {
	var all []httpapi.Listener
	for _, at := range []struct {
		protocol string
		ln       net.Listener
	}{{"amqp", p.amqp}, {"amqp/ssl", p.amqps}, {"http", p.http}} {
		if at.ln == nil {
			continue
		}
		if tcp, ok := at.ln.Addr().(*net.TCPAddr); ok {
			all = append(all, httpapi.Listener{Protocol: at.protocol, IP: tcp.IP.String(), Port: tcp.Port})
		}
	}
	return all
}
