package load

import (
	"encoding/binary"
	"fmt"
	"time"
)

// stamp heads every body: who published it, as its how-manieth, when, and how long it was to
// wait. A delay of 0 means that the message was not delayed.
type stamp struct {
	publisher uint32
	seq       uint64
	sent      time.Time
	delay     time.Duration
}

// stampSize is the encoded length: four 8-byte fields, big endian.
const stampSize = 32

func (s stamp) put(body []byte) {
	binary.BigEndian.PutUint64(body, uint64(s.publisher))
	binary.BigEndian.PutUint64(body[8:], s.seq)
	binary.BigEndian.PutUint64(body[16:], uint64(s.sent.UnixNano()))
	binary.BigEndian.PutUint64(body[24:], uint64(s.delay))
}

func readStamp(body []byte) (stamp, error) {
	if len(body) < stampSize {
		return stamp{}, fmt.Errorf("read stamp: body of %d bytes is not ours", len(body))
	}
	return stamp{
		publisher: uint32(binary.BigEndian.Uint64(body)),
		seq:       binary.BigEndian.Uint64(body[8:]),
		sent:      time.Unix(0, int64(binary.BigEndian.Uint64(body[16:]))),
		delay:     time.Duration(binary.BigEndian.Uint64(body[24:])),
	}, nil
}

// due is when the message may be handed over at the earliest: the broker accepted it after it
// was sent, so its own due is this or later.
func (s stamp) due() time.Time { return s.sent.Add(s.delay) }
