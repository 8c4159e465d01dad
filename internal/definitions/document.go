package definitions

import (
	"encoding/json"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/auth"
	"github.com/duepost/duepost/internal/broker"
)

// Document is what a definitions file says, in the form of RabbitMQ 3.10.
type Document struct {
	RabbitVersion    string            `json:"rabbit_version"`
	RabbitMQVersion  string            `json:"rabbitmq_version"`
	ProductName      string            `json:"product_name"`
	ProductVersion   string            `json:"product_version"`
	Users            []User            `json:"users"`
	VHosts           []VHost           `json:"vhosts"`
	Permissions      []Permission      `json:"permissions"`
	TopicPermissions []TopicPermission `json:"topic_permissions"`
	Parameters       []Parameter       `json:"parameters"`
	GlobalParameters []GlobalParameter `json:"global_parameters"`
	Topology
}

// VHostDocument is what is said of one virtual host. Queues, exchanges and bindings do not name it.
type VHostDocument struct {
	RabbitVersion string      `json:"rabbit_version"`
	Parameters    []Parameter `json:"parameters"`
	Topology
}

// Topology is what is in virtual hosts.
type Topology struct {
	Policies  []Policy   `json:"policies"`
	Queues    []Queue    `json:"queues"`
	Exchanges []Exchange `json:"exchanges"`
	Bindings  []Binding  `json:"bindings"`
}

// User is who may connect.
type User struct {
	Name             string      `json:"name"`
	PasswordHash     string      `json:"password_hash"`
	HashingAlgorithm string      `json:"hashing_algorithm"`
	Tags             []string    `json:"tags"`
	Limits           auth.Limits `json:"limits"`

	at       place
	password *string // instead of the hash, in files written by hand
}

// VHost is a virtual host.
type VHost struct {
	Name     string    `json:"name"`
	Metadata *Metadata `json:"metadata,omitempty"` // nil if nothing is said of it

	at      place
	tracing bool
}

// Metadata is what is kept about a virtual host for its operators.
type Metadata struct {
	Description      string   `json:"description"`
	Tags             []string `json:"tags"`
	DefaultQueueType string   `json:"default_queue_type,omitempty"`
}

// Permission is what a user may do in a virtual host: patterns of names.
type Permission struct {
	User      string `json:"user"`
	VHost     string `json:"vhost"`
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`

	at place
}

// TopicPermission is what a user may do with a topic exchange: patterns of routing keys.
type TopicPermission struct {
	User     string `json:"user"`
	VHost    string `json:"vhost"`
	Exchange string `json:"exchange"`
	Write    string `json:"write"`
	Read     string `json:"read"`

	at place
}

// Parameter is a value that belongs to a virtual host and a component, operator policies among
// them.
type Parameter struct {
	Value     json.RawMessage `json:"value"`
	VHost     string          `json:"vhost"`
	Component string          `json:"component"`
	Name      string          `json:"name"`

	at     place
	policy *Policy            // of an operator policy
	limits broker.VHostLimits // of limits of a virtual host
}

// GlobalParameter is a value that belongs to no virtual host.
type GlobalParameter struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`

	at place
}

// Policy is a policy; see package policy.
type Policy struct {
	VHost      string         `json:"vhost"`
	Name       string         `json:"name"`
	Pattern    string         `json:"pattern"`
	ApplyTo    string         `json:"apply-to"`
	Definition map[string]any `json:"definition"`
	Priority   float64        `json:"priority"`

	at place
}

// Queue is a queue's declaration.
type Queue struct {
	Name       string    `json:"name"`
	VHost      string    `json:"vhost,omitempty"`
	Durable    bool      `json:"durable"`
	AutoDelete bool      `json:"auto_delete"`
	Arguments  Arguments `json:"arguments"`

	at place
}

// Exchange is an exchange's declaration.
type Exchange struct {
	Name       string    `json:"name"`
	VHost      string    `json:"vhost,omitempty"`
	Type       string    `json:"type"`
	Durable    bool      `json:"durable"`
	AutoDelete bool      `json:"auto_delete"`
	Internal   bool      `json:"internal"`
	Arguments  Arguments `json:"arguments"`

	at place
}

// Binding leads from an exchange to a queue or to an exchange.
type Binding struct {
	Source          string    `json:"source"`
	VHost           string    `json:"vhost,omitempty"`
	Destination     string    `json:"destination"`
	DestinationType string    `json:"destination_type"` // toQueue or toExchange
	RoutingKey      string    `json:"routing_key"`
	Arguments       Arguments `json:"arguments"`

	at place
}

// What DestinationType may be.
const (
	toQueue    = "queue"
	toExchange = "exchange"
)

// Arguments are those of a declaration.
type Arguments amqp.Table

// MarshalJSON writes values that JSON does not have as RabbitMQ does: a time as its seconds, bytes
// as a text.
func (a Arguments) MarshalJSON() ([]byte, error) { return json.Marshal(PlainTable(amqp.Table(a))) }
