package server

import (
	"strings"
	"testing"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

// rawMethod is a method frame with arguments of any shape.
func rawMethod(channel uint16, id wire.MethodID, args string) []byte {
	payload := []byte{byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}
	return wire.AppendFrame(nil, wire.FrameMethod, channel, append(payload, args...))
}

// nested is a table with a table in it and so on.
func nested(depth int) amqp.RawTable {
	t := amqp.RawTable{}
	for range depth {
		b := append([]byte{1, 'k', 'F'}, byte(len(t)>>24), byte(len(t)>>16), byte(len(t)>>8), byte(len(t)))
		t = append(b, t...)
	}
	return t
}

// badInput is what a client that is connected may get wrong, and what it is told.
type badInput struct {
	name string
	// play gets a client with channel 1 open, on which there is a queue q.
	play func(p *script)
	// code and text of the close method; on channel 0 for the connection.
	channel uint16
	code    uint16
	text    string
	// method is what the close method names as the cause; 0 for none.
	method wire.MethodID
}

func badInputs() []badInput {
	publish := &wire.BasicPublish{RoutingKey: []byte("q")}
	header := func(size uint64) []byte {
		return wire.AppendContentHeader(nil, 1, wire.ClassBasic, size, []byte{0, 0})
	}
	body := func(text string) []byte {
		return wire.AppendFrame(nil, wire.FrameBody, 1, []byte(text))
	}
	begin := func(p *script) { p.send(1, publish) }
	return []badInput{
		// frames
		{name: "wrong frame end", play: func(p *script) {
			b := wire.AppendMethod(nil, 1, &wire.BasicQos{})
			b[len(b)-1] = 0
			p.write(b)
		}, code: amqp.FrameError},
		{name: "frame type 9", play: func(p *script) { p.write(wire.AppendFrame(nil, 9, 1, []byte("x"))) },
			code: amqp.FrameError},
		{name: "frame beyond frame-max", play: func(p *script) {
			p.write([]byte{wire.FrameBody, 0, 1, 0, 2, 0, 1})
		}, code: amqp.FrameError, text: "frame_too_large"},
		{name: "heartbeat on a channel", play: func(p *script) {
			p.write(wire.AppendFrame(nil, wire.FrameHeartbeat, 1, nil))
		}, code: amqp.UnexpectedFrame},
		{name: "heartbeat on a channel that is not open", play: func(p *script) {
			p.write(wire.AppendFrame(nil, wire.FrameHeartbeat, 2, nil))
		}, code: amqp.UnexpectedFrame},
		{name: "body on channel 0", play: func(p *script) {
			p.write(wire.AppendFrame(nil, wire.FrameBody, 0, []byte("0123456789abcdefg")))
		}, code: amqp.UnexpectedFrame, text: "type 3, first 16 octets"},
		{name: "method frame without a method", play: func(p *script) {
			p.write(wire.AppendFrame(nil, wire.FrameMethod, 1, []byte{0, 60}))
		}, code: amqp.FrameError},

		// methods
		{name: "unknown method", play: func(p *script) { p.write(rawMethod(1, 60<<16|99, "")) },
			code: amqp.NotImplemented, method: 60<<16 | 99},
		{name: "unknown class", play: func(p *script) { p.write(rawMethod(1, 99<<16|10, "")) },
			code: amqp.NotImplemented, method: 99<<16 | 10},
		{name: "unknown method on channel 0", play: func(p *script) { p.write(rawMethod(0, 10<<16|99, "")) },
			code: amqp.NotImplemented, method: 10<<16 | 99},
		{name: "channel's method on channel 0", play: func(p *script) { p.send(0, &wire.BasicQos{}) },
			code: amqp.ChannelError, text: "unexpected method in connection state running", method: wire.BasicQosID},
		{name: "handshake again", play: func(p *script) { p.send(0, &wire.ConnectionStartOk{}) },
			code: amqp.ChannelError, method: wire.ConnectionStartOkID},
		{name: "connection's method on a channel", play: func(p *script) { p.send(1, &wire.ConnectionClose{}) },
			code: amqp.CommandInvalid, text: "unimplemented method", method: wire.ConnectionCloseID},
		{name: "server's method", play: func(p *script) { p.send(1, &wire.QueueDeclareOk{}) },
			code: amqp.CommandInvalid, text: "unimplemented method", method: wire.QueueDeclareOkID},
		{name: "arguments cut off", play: func(p *script) { p.write(rawMethod(1, wire.QueueDeclareID, "\x00\x00\x05ab")) },
			code: amqp.FrameError, method: wire.QueueDeclareID},
		{name: "arguments of publish cut off", play: func(p *script) { p.write(rawMethod(1, wire.BasicPublishID, "\x00\x00\x05ab")) },
			code: amqp.FrameError, method: wire.BasicPublishID},
		{name: "arguments of ack cut off", play: func(p *script) { p.write(rawMethod(1, wire.BasicAckID, "\x00")) },
			code: amqp.FrameError, method: wire.BasicAckID},
		{name: "table 1,000 deep", play: func(p *script) {
			p.send(1, &wire.QueueDeclare{Queue: "deep", Arguments: nested(1000)})
		}, code: amqp.SyntaxError, method: wire.QueueDeclareID},

		// channels
		{name: "method on a channel that is not open", play: func(p *script) { p.send(2, &wire.BasicQos{}) },
			code: amqp.ChannelError, text: "CHANNEL_ERROR - expected 'channel.open'", method: wire.BasicQosID},
		{name: "body on a channel that is not open", play: func(p *script) {
			p.write(wire.AppendFrame(nil, wire.FrameBody, 2, []byte("x")))
		}, code: amqp.UnexpectedFrame, text: "expected method frame, got non method frame instead"},
		{name: "open twice", play: func(p *script) { p.send(1, &wire.ChannelOpen{}) },
			code: amqp.ChannelError, text: "second 'channel.open' seen", method: wire.ChannelOpenID},
		{name: "channel beyond channel-max", play: func(p *script) { p.send(2048, &wire.ChannelOpen{}) },
			code: amqp.NotAllowed, text: "beyond the negotiated channel_max (2047)", method: wire.ChannelOpenID},
		{name: "highest channel number", play: func(p *script) { p.send(65535, &wire.ChannelOpen{}) },
			code: amqp.NotAllowed, method: wire.ChannelOpenID},
		{name: "flow off", play: func(p *script) { p.send(1, &wire.ChannelFlow{Active: false}) },
			code: amqp.NotImplemented, text: "active=false", method: wire.ChannelFlowID},

		// content
		{name: "header without publish", play: func(p *script) { p.write(header(1)) },
			code: amqp.UnexpectedFrame, text: "expected method frame, got non method frame instead"},
		{name: "body without publish", play: func(p *script) { p.write(body("x")) },
			code: amqp.UnexpectedFrame, text: "expected method frame, got non method frame instead"},
		{name: "body without header", play: func(p *script) { begin(p); p.write(body("x")) },
			code:   amqp.UnexpectedFrame,
			text:   "expected content header for class 60, got non content header frame instead",
			method: wire.BasicPublishID},
		{name: "method instead of header", play: func(p *script) { begin(p); p.send(1, &wire.BasicQos{}) },
			code:   amqp.UnexpectedFrame,
			text:   "expected content header for class 60, got non content header frame instead",
			method: wire.BasicPublishID},
		{name: "publish instead of header", play: func(p *script) { begin(p); begin(p) },
			code: amqp.UnexpectedFrame, method: wire.BasicPublishID},
		{name: "header of another class", play: func(p *script) {
			begin(p)
			p.write(wire.AppendContentHeader(nil, 1, 50, 1, []byte{0, 0}))
		}, code: amqp.UnexpectedFrame, text: "expected content header for class 60, got one for class 50 instead",
			method: wire.BasicPublishID},
		{name: "header with a weight", play: func(p *script) {
			begin(p)
			b := header(1)
			b[7+3] = 1
			p.write(b)
		}, code: amqp.UnexpectedFrame, method: wire.BasicPublishID},
		{name: "header twice", play: func(p *script) { begin(p); p.write(header(1)); p.write(header(1)) },
			code:   amqp.UnexpectedFrame,
			text:   "expected content body, got non content body frame instead",
			method: wire.BasicPublishID},
		{name: "header cut off", play: func(p *script) {
			begin(p)
			p.write(wire.AppendFrame(nil, wire.FrameHeader, 1, []byte{0, 60, 0, 0}))
		}, code: amqp.FrameError, method: wire.BasicPublishID},
		{name: "properties cut off", play: func(p *script) {
			begin(p)
			p.write(wire.AppendContentHeader(nil, 1, 60, 0, []byte{0x80, 0, 5, 'a'}))
		}, code: amqp.SyntaxError, method: wire.BasicPublishID},
		{name: "headers 1,000 deep", play: func(p *script) {
			deep := amqp.Properties{}
			deep.SetHeaders(nested(1000))
			p.publish(1, publish, deep, "x")
		}, code: amqp.SyntaxError, method: wire.BasicPublishID},
		{name: "body longer than announced", play: func(p *script) { begin(p); p.write(header(2)); p.write(body("abc")) },
			code: amqp.FrameError, text: "content body frame exceeds remaining content size",
			method: wire.BasicPublishID},
		{name: "second body frame too long", play: func(p *script) {
			begin(p)
			p.write(header(3))
			p.write(body("ab"))
			p.write(body("cd"))
		}, code: amqp.FrameError, text: "content body frame exceeds remaining content size",
			method: wire.BasicPublishID},
		{name: "body shorter than announced", play: func(p *script) {
			begin(p)
			p.write(header(3))
			p.write(body("ab"))
			begin(p)
		}, code: amqp.UnexpectedFrame, text: "expected content body, got non content body frame instead",
			method: wire.BasicPublishID},
		{name: "immediate", play: func(p *script) { p.send(1, &wire.BasicPublish{Immediate: true}) },
			code: amqp.NotImplemented, text: "immediate=true", method: wire.BasicPublishID},
		{name: "body beyond the limit", play: func(p *script) { begin(p); p.write(header(128<<20 + 1)) },
			channel: 1, code: amqp.PreconditionFailed,
			text:   "message size 134217729 is larger than configured max size 134217728",
			method: wire.BasicPublishID},
		{name: "body of all bits", play: func(p *script) { begin(p); p.write(header(1<<64 - 1)) },
			channel: 1, code: amqp.PreconditionFailed, method: wire.BasicPublishID},

		// what channels are asked to do
		{name: "ack of nothing", play: func(p *script) { p.send(1, &wire.BasicAck{DeliveryTag: 1}) },
			channel: 1, code: amqp.PreconditionFailed, text: "PRECONDITION_FAILED - unknown delivery tag 1",
			method: wire.BasicAckID},
		{name: "ack of tag 0", play: func(p *script) { p.send(1, &wire.BasicAck{}) },
			channel: 1, code: amqp.PreconditionFailed, text: "unknown delivery tag 0", method: wire.BasicAckID},
		{name: "nack of nothing", play: func(p *script) { p.send(1, &wire.BasicNack{DeliveryTag: 7, Multiple: true}) },
			channel: 1, code: amqp.PreconditionFailed, text: "unknown delivery tag 7", method: wire.BasicNackID},
		{name: "reject of nothing", play: func(p *script) { p.send(1, &wire.BasicReject{DeliveryTag: 7}) },
			channel: 1, code: amqp.PreconditionFailed, method: wire.BasicRejectID},
		{name: "prefetch in octets", play: func(p *script) { p.send(1, &wire.BasicQos{PrefetchSize: 5}) },
			code: amqp.NotImplemented, text: "prefetch_size!=0 (5)", method: wire.BasicQosID},
		{name: "recover without requeue", play: func(p *script) { p.send(1, &wire.BasicRecover{}) },
			code: amqp.NotImplemented, text: "requeue=false", method: wire.BasicRecoverID},
		{name: "commit without tx", play: func(p *script) { p.send(1, &wire.TxCommit{}) },
			channel: 1, code: amqp.PreconditionFailed, text: "channel is not transactional", method: wire.TxCommitID},
		{name: "rollback without tx", play: func(p *script) { p.send(1, &wire.TxRollback{}) },
			channel: 1, code: amqp.PreconditionFailed, text: "channel is not transactional", method: wire.TxRollbackID},
		{name: "tx after confirm", play: func(p *script) { p.send(1, &wire.ConfirmSelect{NoWait: true}, &wire.TxSelect{}) },
			channel: 1, code: amqp.PreconditionFailed, text: "cannot switch from confirm to tx mode",
			method: wire.TxSelectID},
		{name: "no queue declared", play: func(p *script) { p.channel(3).send(3, &wire.QueuePurge{}) },
			channel: 3, code: amqp.NotFound, text: "no previously declared queue", method: wire.QueuePurgeID},
	}
}

// TestBadInput plays each mistake and checks what the client is told, that
// another client notices nothing, and, by the bubble, that nothing is left
// behind.
func TestBadInput(t *testing.T) {
	t.Parallel()
	for _, tt := range badInputs() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T) { playBadInput(t, tt) })
		})
	}
}

func playBadInput(t *testing.T, tt badInput) {
	s := newTestServer(t)
	other := s.pipe().open(0).channel(1)
	p := s.pipe().open(0).channel(1)
	p.declare(1, "q")
	tt.play(p)
	code, text, method := uint16(0), "", wire.MethodID(0)
	if tt.channel == 0 {
		var m wire.ConnectionClose
		p.expect(0, &m)
		code, text, method = m.ReplyCode, m.ReplyText, wire.MethodID(m.ClassID)<<16|wire.MethodID(m.MethodID)
		p.send(0, &wire.ConnectionCloseOk{})
		p.expectEnd()
	} else {
		var m wire.ChannelClose
		p.expect(tt.channel, &m)
		code, text, method = m.ReplyCode, m.ReplyText, wire.MethodID(m.ClassID)<<16|wire.MethodID(m.MethodID)
		// What was under way is thrown away, and the number can be used again.
		p.write(wire.AppendFrame(nil, wire.FrameBody, tt.channel, []byte("rest")))
		p.send(tt.channel, &wire.BasicQos{}, &wire.ChannelCloseOk{})
		p.channel(tt.channel).close()
	}
	if code != tt.code || !strings.Contains(text, tt.text) || method != tt.method {
		t.Errorf("got %d %q for %s, want %d %q for %s", code, text, method, tt.code, tt.text, tt.method)
	}
	other.declare(1, "still works")
	other.close()
	st := s.Stats()
	if n := st.FrameErrors + st.ConnectionErrors + st.ChannelErrors; n != 1 {
		t.Errorf("counted %d errors, want 1: %+v", n, st)
	}
	if st.Panics != 0 {
		t.Error("there was a panic")
	}
}
