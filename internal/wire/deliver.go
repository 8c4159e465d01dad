package wire

import (
	"encoding/binary"
	"slices"

	"github.com/duepost/duepost/internal/amqp"
)

// AppendDeliver appends a whole delivery: basic.deliver, header and body
// frames. consumerTag has at most 255 octets; exchangeAndKey is two adjacent
// short strings as encoded; props are encoded properties; frameMax counts
// whole frames, 0 means no limit. [amqp basic.deliver]
func AppendDeliver(dst []byte, channel uint16, consumerTag string, deliveryTag uint64,
	redelivered bool, exchangeAndKey, props, body []byte, frameMax uint32) []byte {
	args := 1 + len(consumerTag) + 8 + 1 + len(exchangeAndKey)
	dst = slices.Grow(dst, FrameOverhead+4+args+contentSize(props, body, frameMax))

	dst = appendStart(dst, FrameMethod, channel, 4+args)
	dst = binary.BigEndian.AppendUint32(dst, uint32(BasicDeliverID))
	dst = append(dst, byte(len(consumerTag)))
	dst = append(dst, consumerTag...)
	dst = binary.BigEndian.AppendUint64(dst, deliveryTag)
	dst = append(dst, packBits(redelivered))
	dst = append(dst, exchangeAndKey...)
	dst = append(dst, FrameEnd)

	dst = AppendContentHeader(dst, channel, ClassBasic, uint64(len(body)), props)
	return AppendBody(dst, channel, body, frameMax)
}

// AppendGetOk appends a whole answer to basic.get; see AppendDeliver.
func AppendGetOk(dst []byte, channel uint16, deliveryTag uint64, redelivered bool,
	messageCount uint32, exchangeAndKey, props, body []byte, frameMax uint32) []byte {
	dst = appendStart(dst, FrameMethod, channel, 4+8+1+len(exchangeAndKey)+4)
	dst = binary.BigEndian.AppendUint32(dst, uint32(BasicGetOkID))
	dst = binary.BigEndian.AppendUint64(dst, deliveryTag)
	dst = append(dst, packBits(redelivered))
	dst = append(dst, exchangeAndKey...)
	dst = binary.BigEndian.AppendUint32(dst, messageCount)
	dst = append(dst, FrameEnd)
	return AppendContent(dst, channel, props, body, frameMax)
}

// AppendReturn appends a whole returned message; see AppendDeliver. RabbitMQ
// gives the code's name, such as "NO_ROUTE", as text.
func AppendReturn(dst []byte, channel uint16, code uint16, text string,
	exchangeAndKey, props, body []byte, frameMax uint32) []byte {
	dst = appendStart(dst, FrameMethod, channel, 4+2+1+len(text)+len(exchangeAndKey))
	dst = binary.BigEndian.AppendUint32(dst, uint32(BasicReturnID))
	dst = binary.BigEndian.AppendUint16(dst, code)
	dst = amqp.AppendShortStr(dst, text)
	dst = append(dst, exchangeAndKey...)
	dst = append(dst, FrameEnd)
	return AppendContent(dst, channel, props, body, frameMax)
}
