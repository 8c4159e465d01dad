package server

import (
	"testing"

	"github.com/duepost/duepost/internal/broker"
)

func newTestBroker(t *testing.T) *broker.Broker {
	return &broker.Broker{}
}
