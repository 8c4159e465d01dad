package wire

import "github.com/duepost/duepost/internal/amqp"

// Method is a method's arguments. Implementations are pointers to the structs
// of this package; none is safe for concurrent use.
type Method interface {
	// ID returns the method's class and method id.
	ID() MethodID
	// Decode reads all arguments from src, which must hold them and no more.
	// It overwrites every field. The error is an *amqp.Error with class and
	// method set: FRAME_ERROR if the arguments are cut off, overlong or not
	// UTF-8, SYNTAX_ERROR for a malformed table. Tables and byte slices are
	// views of src.
	Decode(src []byte) error
	// Append appends all arguments. Short strings beyond 255 octets are cut.
	Append(dst []byte) []byte
}

// New returns an empty method for the id. The error for an id that does not
// exist is NOT_IMPLEMENTED.
func New(id MethodID) (Method, error) {
	if m, _ := lookup(id); m != nil {
		return m, nil
	}
	return nil, &amqp.Error{
		Code:   amqp.NotImplemented,
		Text:   "unknown method " + id.String(),
		Class:  id.Class(),
		Method: id.Method(),
	}
}

// Parse decodes a method frame's payload into a new method.
func Parse(payload []byte) (Method, error) {
	id, args, err := CutMethodID(payload)
	if err != nil {
		return nil, err
	}
	m, err := New(id)
	if err != nil {
		return nil, err
	}
	if err := m.Decode(args); err != nil {
		return nil, err
	}
	return m, nil
}

// lookup returns a new method and its name; nil and "" if there is none.
func lookup(id MethodID) (m Method, name string) {
	switch id {
	case ConnectionStartID:
		return &ConnectionStart{}, "connection.start"
	case ConnectionStartOkID:
		return &ConnectionStartOk{}, "connection.start-ok"
	case ConnectionSecureID:
		return &ConnectionSecure{}, "connection.secure"
	case ConnectionSecureOkID:
		return &ConnectionSecureOk{}, "connection.secure-ok"
	case ConnectionTuneID:
		return &ConnectionTune{}, "connection.tune"
	case ConnectionTuneOkID:
		return &ConnectionTuneOk{}, "connection.tune-ok"
	case ConnectionOpenID:
		return &ConnectionOpen{}, "connection.open"
	case ConnectionOpenOkID:
		return &ConnectionOpenOk{}, "connection.open-ok"
	case ConnectionCloseID:
		return &ConnectionClose{}, "connection.close"
	case ConnectionCloseOkID:
		return &ConnectionCloseOk{}, "connection.close-ok"
	case ConnectionBlockedID:
		return &ConnectionBlocked{}, "connection.blocked"
	case ConnectionUnblockedID:
		return &ConnectionUnblocked{}, "connection.unblocked"
	case ConnectionUpdateSecretID:
		return &ConnectionUpdateSecret{}, "connection.update-secret"
	case ConnectionUpdateSecretOkID:
		return &ConnectionUpdateSecretOk{}, "connection.update-secret-ok"
	case ChannelOpenID:
		return &ChannelOpen{}, "channel.open"
	case ChannelOpenOkID:
		return &ChannelOpenOk{}, "channel.open-ok"
	case ChannelFlowID:
		return &ChannelFlow{}, "channel.flow"
	case ChannelFlowOkID:
		return &ChannelFlowOk{}, "channel.flow-ok"
	case ChannelCloseID:
		return &ChannelClose{}, "channel.close"
	case ChannelCloseOkID:
		return &ChannelCloseOk{}, "channel.close-ok"
	case AccessRequestID:
		return &AccessRequest{}, "access.request"
	case AccessRequestOkID:
		return &AccessRequestOk{}, "access.request-ok"
	case ExchangeDeclareID:
		return &ExchangeDeclare{}, "exchange.declare"
	case ExchangeDeclareOkID:
		return &ExchangeDeclareOk{}, "exchange.declare-ok"
	case ExchangeDeleteID:
		return &ExchangeDelete{}, "exchange.delete"
	case ExchangeDeleteOkID:
		return &ExchangeDeleteOk{}, "exchange.delete-ok"
	case ExchangeBindID:
		return &ExchangeBind{}, "exchange.bind"
	case ExchangeBindOkID:
		return &ExchangeBindOk{}, "exchange.bind-ok"
	case ExchangeUnbindID:
		return &ExchangeUnbind{}, "exchange.unbind"
	case ExchangeUnbindOkID:
		return &ExchangeUnbindOk{}, "exchange.unbind-ok"
	case QueueDeclareID:
		return &QueueDeclare{}, "queue.declare"
	case QueueDeclareOkID:
		return &QueueDeclareOk{}, "queue.declare-ok"
	case QueueBindID:
		return &QueueBind{}, "queue.bind"
	case QueueBindOkID:
		return &QueueBindOk{}, "queue.bind-ok"
	case QueueUnbindID:
		return &QueueUnbind{}, "queue.unbind"
	case QueueUnbindOkID:
		return &QueueUnbindOk{}, "queue.unbind-ok"
	case QueuePurgeID:
		return &QueuePurge{}, "queue.purge"
	case QueuePurgeOkID:
		return &QueuePurgeOk{}, "queue.purge-ok"
	case QueueDeleteID:
		return &QueueDelete{}, "queue.delete"
	case QueueDeleteOkID:
		return &QueueDeleteOk{}, "queue.delete-ok"
	case BasicQosID:
		return &BasicQos{}, "basic.qos"
	case BasicQosOkID:
		return &BasicQosOk{}, "basic.qos-ok"
	case BasicConsumeID:
		return &BasicConsume{}, "basic.consume"
	case BasicConsumeOkID:
		return &BasicConsumeOk{}, "basic.consume-ok"
	case BasicCancelID:
		return &BasicCancel{}, "basic.cancel"
	case BasicCancelOkID:
		return &BasicCancelOk{}, "basic.cancel-ok"
	case BasicPublishID:
		return &BasicPublish{}, "basic.publish"
	case BasicReturnID:
		return &BasicReturn{}, "basic.return"
	case BasicDeliverID:
		return &BasicDeliver{}, "basic.deliver"
	case BasicGetID:
		return &BasicGet{}, "basic.get"
	case BasicGetOkID:
		return &BasicGetOk{}, "basic.get-ok"
	case BasicGetEmptyID:
		return &BasicGetEmpty{}, "basic.get-empty"
	case BasicAckID:
		return &BasicAck{}, "basic.ack"
	case BasicRejectID:
		return &BasicReject{}, "basic.reject"
	case BasicRecoverAsyncID:
		return &BasicRecoverAsync{}, "basic.recover-async"
	case BasicRecoverID:
		return &BasicRecover{}, "basic.recover"
	case BasicRecoverOkID:
		return &BasicRecoverOk{}, "basic.recover-ok"
	case BasicNackID:
		return &BasicNack{}, "basic.nack"
	case TxSelectID:
		return &TxSelect{}, "tx.select"
	case TxSelectOkID:
		return &TxSelectOk{}, "tx.select-ok"
	case TxCommitID:
		return &TxCommit{}, "tx.commit"
	case TxCommitOkID:
		return &TxCommitOk{}, "tx.commit-ok"
	case TxRollbackID:
		return &TxRollback{}, "tx.rollback"
	case TxRollbackOkID:
		return &TxRollbackOk{}, "tx.rollback-ok"
	case ConfirmSelectID:
		return &ConfirmSelect{}, "confirm.select"
	case ConfirmSelectOkID:
		return &ConfirmSelectOk{}, "confirm.select-ok"
	}
	return nil, ""
}
