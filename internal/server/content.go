package server

import (
	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/wire"
)

// contentStage is which frame of a publish comes next.
type contentStage uint8

const (
	contentNone   contentStage = iota // no publish has begun
	contentHeader                     // the header
	contentBody                       // more of the body
)

// content is a publish being received: method, header, body frames, in that
// order and with nothing of the same channel in between. [amqp 4.2.6]
//
// A body in one frame is used where it lies in the read buffer. One in several
// frames is put together in body, which grows with what has come, not with what
// was announced.
type content struct {
	stage  contentStage
	method wire.BasicPublish // views into names
	names  []byte            // exchange and routing key as encoded, copied
	props  []byte            // encoded properties, copied
	size   uint64            // of the body as announced
	body   []byte            // what has come of it, if it comes in parts

	properties amqp.Properties // views into props
	message    broker.Message
}

// keepBody is the largest body buffer a channel keeps for the next publish.
const keepBody = 256 << 10

// begin takes the method, which is a view.
func (p *content) begin(args []byte) error {
	if err := p.method.Decode(args); err != nil {
		return err
	}
	p.names = append(p.names[:0], p.method.ExchangeAndKey...)
	n := len(p.method.Exchange)
	p.method.Exchange = p.names[1 : 1+n]
	p.method.RoutingKey = p.names[1+n+1:]
	p.method.ExchangeAndKey = p.names
	p.stage = contentHeader
	return nil
}

// header takes the content header. It reports whether the publish is complete.
func (p *content) header(payload []byte, maxSize int64) (complete bool, err error) {
	var h wire.ContentHeader
	if p.stage != contentHeader {
		return false, p.unexpected()
	}
	if err := h.Decode(payload); err != nil {
		return false, inMethod(err, wire.BasicPublishID)
	}
	if h.Class != wire.ClassBasic {
		return false, inMethod(amqp.Errorf(amqp.UnexpectedFrame,
			"expected content header for class %d, got one for class %d instead",
			wire.ClassBasic, h.Class), wire.BasicPublishID)
	}
	if h.BodySize > uint64(maxSize) {
		return false, inMethod(amqp.Errorf(amqp.PreconditionFailed,
			"message size %d is larger than configured max size %d", h.BodySize, maxSize),
			wire.BasicPublishID)
	}
	p.props = append(p.props[:0], h.Properties...)
	p.size = h.BodySize
	p.body = p.body[:0]
	p.stage = contentBody
	return p.size == 0, nil
}

// part takes a body frame. It returns the body once it is complete.
func (p *content) part(payload []byte) (body []byte, complete bool, err error) {
	if p.stage != contentBody {
		return nil, false, p.unexpected()
	}
	have := uint64(len(p.body) + len(payload))
	if have > p.size {
		return nil, false, inMethod(amqp.Errorf(amqp.FrameError,
			"content body frame exceeds remaining content size"), wire.BasicPublishID)
	}
	if uint64(len(payload)) == p.size {
		return payload, true, nil
	}
	p.body = append(p.body, payload...)
	return p.body, have == p.size, nil
}

// reset makes ready for the next publish and gives back what a large one needed.
func (p *content) reset() {
	p.stage = contentNone
	p.message.Body = nil
	if cap(p.body) > keepBody {
		p.body = nil
	}
}

// unexpected is the error for a frame out of its place. [amqp 4.2.6]
func (p *content) unexpected() error {
	switch p.stage {
	case contentHeader:
		return inMethod(amqp.Errorf(amqp.UnexpectedFrame,
			"expected content header for class %d, got non content header frame instead",
			wire.ClassBasic), wire.BasicPublishID)
	case contentBody:
		return inMethod(amqp.Errorf(amqp.UnexpectedFrame,
			"expected content body, got non content body frame instead"), wire.BasicPublishID)
	}
	return amqp.Errorf(amqp.UnexpectedFrame,
		"expected method frame, got non method frame instead")
}
