package store

// Recovery is what Open found. Pending delayed entries are not in it: they are
// in place already.
type Recovery struct {
	Definitions []Definition     // in key order
	Queues      []RecoveredQueue // in id order
	Damages     []Damage         // corruption that was skipped
	Cut         *Cut             // the torn tail, if there was one
	Frames      uint64           // replayed
	Records     uint64           // replayed

	entries *gathered
}

// Entries fills dst with the next entries of a queue, in ascending order of their positions, and
// returns how many they are: 0 if there are no more. Queues are asked for in the order of their
// ids; entries of those passed over are gone. It may read scratch files, which go when the store
// is closed. It is not for concurrent use.
func (r *Recovery) Entries(queue uint32, dst []Entry) (n int, err error) {
	if r.entries == nil {
		return 0, nil
	}
	return r.entries.read(queue, dst)
}

// Definition is one stored key and its value.
type Definition struct {
	Key   string
	Value []byte
}

// RecoveredQueue is a queue in which there may be something; see Recovery.Entries. Queues that
// the broker does not know are to be dropped by it (Batch.DropQueue).
type RecoveredQueue struct {
	ID   uint32
	Next uint64 // every position handed out from now on must be at least this
}

// Entry is one message in a recovered queue.
type Entry struct {
	Pos        uint64
	Ref        Ref
	Body       uint32 // length of the body if that is in a body file, else 0
	Arrived    int64  // unix ms
	TTL        int64  // ms, -1 = none
	Persistent bool
	moved      bool // it was delayed; the record at Ref does not name the queue
}

// Damage is corruption that recovery skipped.
type Damage struct {
	File    string `json:"file"`
	Offset  int64  `json:"offset"`
	Length  int64  `json:"length"` // bytes skipped
	Reason  string `json:"reason"`
	Records int    `json:"records"` // known to be lost, 0 if that cannot be told
	Control bool   `json:"control"` // acknowledgements, moves or cancels may be among them: what they ended may be seen again
}

// Cut is the torn tail: writes that were never confirmed, cut off.
type Cut struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
}
