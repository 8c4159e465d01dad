package gateway

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/wire"
)

func TestShutdownTellsClientsAndBrokers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	closed := r.dial(t).NotifyClose(make(chan *amqp091.Error, 1))
	must(t, r.Shutdown(t.Context())) // returns though there is no deadline: both sides have ended
	if err := <-closed; err == nil || err.Code != amqp091.ConnectionForced || !strings.Contains(err.Reason, "gateway shuts down") {
		t.Errorf("the client was told %v, want 320", err)
	}
	if _, err := net.Dial("tcp", r.addr); err == nil {
		t.Error("the port is still open")
	}
}

func TestShutdownWaitsForAnswersUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	client, broker := s.connect(t, wire.ProtocolHeader)
	open := wire.AppendMethod(nil, 0, &wire.ConnectionOpen{VirtualHost: "v"})
	_, err := client.Write(open)
	must(t, err)
	expect(t, broker, open)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(ctx) }()
	goodbye := wire.AppendMethod(nil, 0, &wire.ConnectionClose{
		ReplyCode: 320, ReplyText: "CONNECTION_FORCED - the gateway shuts down"})
	expect(t, client, goodbye)
	// What the client has said before its answer still passes.
	last := wire.AppendMethod(nil, 1, &wire.BasicAck{DeliveryTag: 7})
	_, err = client.Write(append(last, wire.AppendMethod(nil, 0, &wire.ConnectionCloseOk{})...))
	must(t, err)
	expect(t, broker, last)
	expect(t, broker, wire.AppendMethod(nil, 0, &wire.ConnectionClose{
		ReplyCode: 200, ReplyText: "the gateway shuts down"}))
	select {
	case err := <-ended:
		t.Errorf("ended with %v before the broker had answered", err)
	default:
	}
	cancel()
	must(t, <-ended)
	expectEnd(t, client)
	expectEnd(t, broker)
}

func TestShutdownEndsWhatHasNoVirtualHost(t *testing.T) {
	t.Parallel()
	s := newScripted(t)
	client, broker := s.connect(t, wire.ProtocolHeader)
	must(t, s.Shutdown(t.Context()))
	expectEnd(t, client)
	expectEnd(t, broker)
}

func TestNoClientIsTakenForTheGateway(t *testing.T) {
	t.Parallel()
	s := newScriptedConfig(t, Config{ShowsCertificate: true})
	client, broker := s.connect(t, wire.ProtocolHeader)
	for _, tc := range []struct{ offered, passes string }{
		{"PLAIN EXTERNAL AMQPLAIN", "PLAIN AMQPLAIN"}, {"EXTERNAL", ""}, {"PLAIN  AMQPLAIN", "PLAIN  AMQPLAIN"},
	} {
		_, err := broker.Write(wire.AppendMethod(nil, 0, &wire.ConnectionStart{VersionMinor: 9, Mechanisms: tc.offered, Locales: "en_US"}))
		must(t, err)
		expect(t, client, wire.AppendMethod(nil, 0, &wire.ConnectionStart{VersionMinor: 9, Mechanisms: tc.passes, Locales: "en_US"}))
	}
	for _, tc := range []struct{ chosen, passes string }{{"EXTERNAL", "EXTERNAL THROUGH A GATEWAY"}, {"PLAIN", "PLAIN"}} {
		_, err := client.Write(wire.AppendMethod(nil, 0, &wire.ConnectionStartOk{Mechanism: tc.chosen, Response: "\x00u\x00p", Locale: "en_US"}))
		must(t, err)
		expect(t, broker, wire.AppendMethod(nil, 0, &wire.ConnectionStartOk{Mechanism: tc.passes, Response: "\x00u\x00p", Locale: "en_US"}))
	}
	// Another protocol has such a mechanism, too, where the gateway does not see it.
	other, err := net.Dial("tcp", s.addr)
	must(t, err)
	must(t, other.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = io.WriteString(other, "AMQP\x03\x01\x00\x00")
	must(t, err)
	expectEnd(t, other)
	if got := s.Stats().Turned; got != 1 {
		t.Errorf("got %d turned away, want 1", got)
	}
}
