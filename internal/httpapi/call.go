package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/duepost/duepost/internal/auth"
	"github.com/duepost/duepost/internal/broker"
)

// maxBody is the largest body in bytes: a definitions file.
const maxBody = 64 << 20

// call is one request by a user who is known.
type call struct {
	*Parts
	r      *http.Request
	health func() Health
	user   auth.User

	messageRates, churn *rates // of the API
}

// object is a JSON object.
type object map[string]any

func (o object) bytes() ([]byte, error) { return json.Marshal(map[string]any(o)) }

// made is the answer 201, with a place if there is one to tell.
type made struct{ at string }

// status is an answer with a code of its own.
type status struct {
	code int
	body any
}

// madeIf is 201 for what is new and 204 for what was there.
func madeIf(created bool) any {
	if created {
		return made{}
	}
	return nil
}

// authenticate finds out who asks. [rmq management]
func (c *call) authenticate() error {
	name, password, ok := c.r.BasicAuth()
	if !ok || c.Users.CheckPassword(name, password, remote(c.r)) != nil {
		return &apiError{http.StatusUnauthorized, "not_authorized", "Login failed"}
	}
	c.user, ok = c.Users.User(name)
	if !ok || !c.hasAnyTag(auth.Management, auth.Policymaker, auth.Monitoring, auth.Administrator) {
		return notAuthorised("Not management user")
	}
	return nil
}

// remote is where a request comes from. What cannot be read is not from this machine.
func remote(r *http.Request) net.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return &net.TCPAddr{}
	}
	return net.TCPAddrFromAddrPort(at)
}

func (c *call) hasAnyTag(tags ...string) bool {
	for _, tag := range tags {
		if c.user.HasTag(tag) {
			return true
		}
	}
	return false
}

func (c *call) isAdministrator() bool { return c.hasAnyTag(auth.Administrator) }
func (c *call) isMonitor() bool       { return c.hasAnyTag(auth.Monitoring, auth.Administrator) }

// name returns what stands in the path for a name.
func (c *call) name(of string) string {
	name, err := url.PathUnescape(c.r.PathValue(of))
	if err != nil {
		return c.r.PathValue(of) // which no server hands on
	}
	return name
}

// vhost returns the virtual host of the path.
func (c *call) vhost() (*broker.VHost, error) {
	if v := c.Broker.VHost(c.name("vhost")); v != nil {
		return v, nil
	}
	return nil, vhostNotFound()
}

// visible returns the virtual hosts that the user may look into: that of the path, else all.
func (c *call) visible() ([]*broker.VHost, error) {
	if c.name("vhost") != "" {
		v, err := c.vhost()
		return []*broker.VHost{v}, err
	}
	var found []*broker.VHost
	for _, v := range c.Broker.VHosts() {
		if c.isMonitor() || c.mayEnter(v.Name()) {
			found = append(found, v)
		}
	}
	return found, nil
}

func (c *call) mayEnter(vhost string) bool {
	_, ok := c.Users.Permission(c.user.Name, vhost)
	return ok
}

// session opens a session of the user in the virtual host of the path: what it does needs the same
// rights as over AMQP. The caller closes it.
func (c *call) session() (*broker.Session, error) {
	vhost := c.name("vhost")
	return c.Broker.Connect(vhost, c.user.Name, c.Users.Rights(c.user.Name, vhost))
}

// decode reads the body, of which nothing is an empty object. Numbers become json.Number.
func (c *call) decode(v any) error {
	text, err := c.body()
	if err != nil || len(text) == 0 {
		return err
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	err = d.Decode(v)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return badRequest("%s: is a JSON %s, which it cannot be", wrong.Field, wrong.Value)
	case err != nil:
		return badRequest("not_json")
	}
	return nil
}

func (c *call) body() ([]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(nil, c.r.Body, maxBody))
	if err != nil {
		return nil, badRequest("body cannot be read: %v", err)
	}
	return text, nil
}

// required is a text that a body must have.
type required struct {
	key   string
	value *string
}

// need refuses a body that lacks one, and names all that it lacks.
func need(texts ...required) error {
	var missing []string
	for _, t := range texts {
		if t.value == nil {
			missing = append(missing, "{key_missing,"+t.key+"}")
		}
	}
	if missing != nil {
		return badRequest("[%s]", strings.Join(missing, ","))
	}
	return nil
}

// tags reads a list, or a text with commas.
func tags(raw json.RawMessage) ([]string, error) {
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		return list, nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, badRequest("tags must be a list, or a string with commas")
	}
	for tag := range strings.SplitSeq(text, ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			list = append(list, tag)
		}
	}
	return list, nil
}

// list is never null in JSON.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
