package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/duepost/duepost/internal/amqp"
)

// MethodID is a class id in the upper and a method id in the lower 16 bits.
type MethodID uint32

// Class returns the class id.
func (id MethodID) Class() uint16 { return uint16(id >> 16) }

// Method returns the method's id within its class.
func (id MethodID) Method() uint16 { return uint16(id) }

// ClassBasic is the only class whose methods carry content.
const ClassBasic uint16 = 60

// CutMethodID splits a method frame's payload into the method's id and its
// arguments. An id too short is FRAME_ERROR; whether the method exists is for
// New to say.
func CutMethodID(payload []byte) (id MethodID, args []byte, err error) {
	if len(payload) < 4 {
		return 0, nil, amqp.Errorf(amqp.FrameError,
			"method frame of %d octets has no room for a class and a method", len(payload))
	}
	return MethodID(binary.BigEndian.Uint32(payload)), payload[4:], nil
}

// HasContent reports whether a content header and body follow the method.
func (id MethodID) HasContent() bool {
	switch id {
	case BasicPublishID, BasicReturnID, BasicDeliverID, BasicGetOkID:
		return true
	}
	return false
}

// Method ids of the specification, with RabbitMQ's extensions. [amqp 1.4]
const (
	ConnectionStartID          MethodID = 10<<16 | 10
	ConnectionStartOkID        MethodID = 10<<16 | 11
	ConnectionSecureID         MethodID = 10<<16 | 20
	ConnectionSecureOkID       MethodID = 10<<16 | 21
	ConnectionTuneID           MethodID = 10<<16 | 30
	ConnectionTuneOkID         MethodID = 10<<16 | 31
	ConnectionOpenID           MethodID = 10<<16 | 40
	ConnectionOpenOkID         MethodID = 10<<16 | 41
	ConnectionCloseID          MethodID = 10<<16 | 50
	ConnectionCloseOkID        MethodID = 10<<16 | 51
	ConnectionBlockedID        MethodID = 10<<16 | 60
	ConnectionUnblockedID      MethodID = 10<<16 | 61
	ConnectionUpdateSecretID   MethodID = 10<<16 | 70
	ConnectionUpdateSecretOkID MethodID = 10<<16 | 71
	ChannelOpenID              MethodID = 20<<16 | 10
	ChannelOpenOkID            MethodID = 20<<16 | 11
	ChannelFlowID              MethodID = 20<<16 | 20
	ChannelFlowOkID            MethodID = 20<<16 | 21
	ChannelCloseID             MethodID = 20<<16 | 40
	ChannelCloseOkID           MethodID = 20<<16 | 41
	AccessRequestID            MethodID = 30<<16 | 10
	AccessRequestOkID          MethodID = 30<<16 | 11
	ExchangeDeclareID          MethodID = 40<<16 | 10
	ExchangeDeclareOkID        MethodID = 40<<16 | 11
	ExchangeDeleteID           MethodID = 40<<16 | 20
	ExchangeDeleteOkID         MethodID = 40<<16 | 21
	ExchangeBindID             MethodID = 40<<16 | 30
	ExchangeBindOkID           MethodID = 40<<16 | 31
	ExchangeUnbindID           MethodID = 40<<16 | 40
	ExchangeUnbindOkID         MethodID = 40<<16 | 51
	QueueDeclareID             MethodID = 50<<16 | 10
	QueueDeclareOkID           MethodID = 50<<16 | 11
	QueueBindID                MethodID = 50<<16 | 20
	QueueBindOkID              MethodID = 50<<16 | 21
	QueueUnbindID              MethodID = 50<<16 | 50
	QueueUnbindOkID            MethodID = 50<<16 | 51
	QueuePurgeID               MethodID = 50<<16 | 30
	QueuePurgeOkID             MethodID = 50<<16 | 31
	QueueDeleteID              MethodID = 50<<16 | 40
	QueueDeleteOkID            MethodID = 50<<16 | 41
	BasicQosID                 MethodID = 60<<16 | 10
	BasicQosOkID               MethodID = 60<<16 | 11
	BasicConsumeID             MethodID = 60<<16 | 20
	BasicConsumeOkID           MethodID = 60<<16 | 21
	BasicCancelID              MethodID = 60<<16 | 30
	BasicCancelOkID            MethodID = 60<<16 | 31
	BasicPublishID             MethodID = 60<<16 | 40
	BasicReturnID              MethodID = 60<<16 | 50
	BasicDeliverID             MethodID = 60<<16 | 60
	BasicGetID                 MethodID = 60<<16 | 70
	BasicGetOkID               MethodID = 60<<16 | 71
	BasicGetEmptyID            MethodID = 60<<16 | 72
	BasicAckID                 MethodID = 60<<16 | 80
	BasicRejectID              MethodID = 60<<16 | 90
	BasicRecoverAsyncID        MethodID = 60<<16 | 100
	BasicRecoverID             MethodID = 60<<16 | 110
	BasicRecoverOkID           MethodID = 60<<16 | 111
	BasicNackID                MethodID = 60<<16 | 120
	TxSelectID                 MethodID = 90<<16 | 10
	TxSelectOkID               MethodID = 90<<16 | 11
	TxCommitID                 MethodID = 90<<16 | 20
	TxCommitOkID               MethodID = 90<<16 | 21
	TxRollbackID               MethodID = 90<<16 | 30
	TxRollbackOkID             MethodID = 90<<16 | 31
	ConfirmSelectID            MethodID = 85<<16 | 10
	ConfirmSelectOkID          MethodID = 85<<16 | 11
)

// String returns the name as the specification writes it: "queue.declare-ok".
func (id MethodID) String() string {
	if _, name := lookup(id); name != "" {
		return name
	}
	return fmt.Sprintf("%d.%d", id.Class(), id.Method())
}
