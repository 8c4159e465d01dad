package tidy

import "slices"

// Modules that packages may use.
const (
	amqpClient = "github.com/rabbitmq/amqp091-go"
	kong       = "github.com/alecthomas/kong"
	goCmp      = "github.com/google/go-cmp"
	xSys       = "golang.org/x/sys"
	hdr        = "github.com/HdrHistogram/hdrhistogram-go"
	regexp2    = "github.com/dlclark/regexp2"
	prometheus = "github.com/prometheus/client_golang"
	yaml       = "go.yaml.in/yaml/v3"
)

// allowedModules are the direct dependencies that go.mod may have. docs/decisions says why
// each is there; a new one needs the same.
func allowedModules() []string {
	return []string{amqpClient, kong, goCmp, xSys, hdr, regexp2 + "/v2", prometheus, yaml}
}

// maxModules is how many direct dependencies we allow ourselves.
const maxModules = 8

// testModules may be used by any test.
func testModules() []string { return []string{goCmp, amqpClient, yaml} }

// layout says for each package what it may import besides the standard library: packages of
// this module by directory ("" is the root package), other modules by path. Tests are free
// within the module. Directories below internal must have a row; others may.
//
// The directions: server -> broker -> {delay, store}; the bytes of the protocol (wire) and its
// meaning (broker) never meet; only daemon knows all parts.
func layout() map[string][]string {
	internal := func(names ...string) []string {
		for i, n := range names {
			names[i] = "internal/" + n
		}
		return names
	}
	with := func(a []string, b ...string) []string { return slices.Concat(a, b) }
	return map[string][]string{
		".":       {amqpClient},
		"dialect": {}, "ladder": {""}, "once": {"", "dialect"}, "outbox": {"", "dialect"}, "sweep": {"", "dialect"},
		"duepostest": internal("config", "daemon", "store"),
		"cmd/duepost": with(internal("amqp", "auth", "config", "daemon", "demo", "gateway", "headers", "httpapi", "load", "management", "relay", "relay/admin", "relay/topology",
			"store", "storebench"),
			"", amqpClient, kong, hdr),
		"internal/amqp": {}, "internal/management": {}, "internal/proxy": {}, "internal/requirement": {}, "internal/tidy": {},
		"internal/auth":           internal("pattern", "store"),
		"internal/wire":           internal("amqp"),
		"internal/headers":        internal("amqp"),
		"internal/store":          {xSys},
		"internal/delay":          with(internal("delay", "store"), xSys),
		"internal/pattern":        {regexp2},
		"internal/policy":         internal("pattern"),
		"internal/definitions":    internal("amqp", "auth", "broker", "pattern", "policy"),
		"internal/broker":         internal("amqp", "headers", "delay", "policy", "store"),
		"internal/server":         internal("amqp", "wire", "broker", "auth", "store"), // of store only LSN and Waiter
		"internal/storebench":     with(internal("delay", "store"), xSys),
		"internal/load":           with(internal("amqp", "headers"), amqpClient, hdr),
		"internal/demo":           with(internal("config", "daemon"), amqpClient),
		"internal/testbroker":     internal("requirement"),
		"internal/testdatabase":   internal("requirement"),
		"internal/oncetest":       {"once"},
		"internal/relay":          with(internal("amqp", "headers", "management", "relay/topology"), amqpClient),
		"internal/relay/admin":    with(internal("management", "relay", "relay/topology"), prometheus),
		"internal/relay/topology": with(internal("headers", "management", "pattern"), amqpClient, yaml),
		"internal/gateway":        with(internal("amqp", "headers", "relay/topology", "wire"), amqpClient),
		"internal/config":         {},
		"internal/dashboard":      {},
		"internal/httpapi":        internal("amqp", "auth", "broker", "dashboard", "definitions", "delay", "policy", "server"),
		"internal/daemon": with(internal("amqp", "auth", "broker", "config", "dashboard", "definitions", "delay", "gateway",
			"httpapi", "relay", "server", "store"), xSys),
	}
}
