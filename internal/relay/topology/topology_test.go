package topology

import (
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		product, version string
		major            int
		fault            string
	}{
		{"RabbitMQ", "3.10.8", 3, ""},
		{"RabbitMQ", "4.3.6", 4, ""},
		{"RabbitMQ", "3.9.29", 0, "needs 3.10 or later"},
		{"RabbitMQ", "2.8.4", 0, "needs 3.10 or later"},
		{"RabbitMQ", "four.three", 0, "not understood"},
		{"RabbitMQ", "4", 0, "needs RabbitMQ"},
		{"Duepost", "4.0.0", 0, "needs RabbitMQ"},
	} {
		major, err := parseVersion(tc.product, tc.version)
		if major != tc.major || (err == nil) != (tc.fault == "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
			t.Errorf("%s %s: got %d and %v, want %d and %q", tc.product, tc.version, major, err, tc.major, tc.fault)
		}
	}
}

func TestExchangeNames(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, kind, fault string }{
		{"orders", "direct", ""},
		{strings.Repeat("x", 247), "topic", ""},
		{strings.Repeat("x", 248), "topic", "248 bytes, allowed are 247"},
		{"", "fanout", "empty"},
		{"orders", "x-delayed-message", "allowed are direct"},
		{"orders.duepost", "direct", "the relay's own"},
		{"duepost.orders", "direct", "the relay's own"},
		{"amq.orders", "headers", "RabbitMQ's own"},
	} {
		err := Exchange{Name: tc.name, Type: tc.kind}.Check()
		if (err == nil) != (tc.fault == "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
			t.Errorf("%q of %q: got %v, want %q", tc.name, tc.kind, err, tc.fault)
		}
	}
}
