package wire

// TxSelect makes a channel transactional.
type TxSelect struct{}

// ID implements Method.
func (*TxSelect) ID() MethodID { return TxSelectID }

// Decode implements Method.
func (m *TxSelect) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*TxSelect) Append(dst []byte) []byte { return dst }

// TxSelectOk confirms transactional mode.
type TxSelectOk struct{}

// ID implements Method.
func (*TxSelectOk) ID() MethodID { return TxSelectOkID }

// Decode implements Method.
func (m *TxSelectOk) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*TxSelectOk) Append(dst []byte) []byte { return dst }

// TxCommit commits what was published and acknowledged.
type TxCommit struct{}

// ID implements Method.
func (*TxCommit) ID() MethodID { return TxCommitID }

// Decode implements Method.
func (m *TxCommit) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*TxCommit) Append(dst []byte) []byte { return dst }

// TxCommitOk confirms a commit.
type TxCommitOk struct{}

// ID implements Method.
func (*TxCommitOk) ID() MethodID { return TxCommitOkID }

// Decode implements Method.
func (m *TxCommitOk) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*TxCommitOk) Append(dst []byte) []byte { return dst }

// TxRollback abandons what was published and acknowledged.
type TxRollback struct{}

// ID implements Method.
func (*TxRollback) ID() MethodID { return TxRollbackID }

// Decode implements Method.
func (m *TxRollback) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*TxRollback) Append(dst []byte) []byte { return dst }

// TxRollbackOk confirms a rollback.
type TxRollbackOk struct{}

// ID implements Method.
func (*TxRollbackOk) ID() MethodID { return TxRollbackOkID }

// Decode implements Method.
func (m *TxRollbackOk) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*TxRollbackOk) Append(dst []byte) []byte { return dst }

// ConfirmSelect turns publisher confirms on. [rmq confirms]
type ConfirmSelect struct {
	NoWait bool
}

// ID implements Method.
func (*ConfirmSelect) ID() MethodID { return ConfirmSelectID }

// Decode implements Method.
func (m *ConfirmSelect) Decode(src []byte) error {
	a := arguments{rest: src}
	a.bits(&m.NoWait)
	return a.end(ConfirmSelectID)
}

// Append implements Method.
func (m *ConfirmSelect) Append(dst []byte) []byte {
	return append(dst, packBits(m.NoWait))
}

// ConfirmSelectOk confirms that confirms are on.
type ConfirmSelectOk struct{}

// ID implements Method.
func (*ConfirmSelectOk) ID() MethodID { return ConfirmSelectOkID }

// Decode implements Method.
func (m *ConfirmSelectOk) Decode(src []byte) error { return decodeNone(src, m.ID()) }

// Append implements Method.
func (*ConfirmSelectOk) Append(dst []byte) []byte { return dst }
