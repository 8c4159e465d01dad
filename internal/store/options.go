package store

import (
	"log/slog"
	"time"
)

// Options tune the store. The zero value of each field means its default.
type Options struct {
	// SegmentBytes is the size of a log segment and of its buffer. A larger
	// message or batch gets a segment of its own. Default 16 MiB.
	SegmentBytes int64
	// ResidentSegments is how many full segments stay readable in memory besides
	// the one being filled. Default 2.
	ResidentSegments int
	// FrameBytes is the size at which a frame is closed; a damaged frame header
	// costs at most this much. Default 64 KiB.
	FrameBytes int
	// LazyCommit is how long a record may wait for the disk while nobody waits
	// for it. Default 20 ms.
	LazyCommit time.Duration
	// FreshBytes is how much of delayed records in full segments stays in the log,
	// in the hope that they fall due soon, before a run is written of the oldest.
	// Publishers of delayed messages wait at three times as much. Default 32 MiB.
	FreshBytes int64
	// RunBytes is the size of a run as it is first written. Default 32 MiB.
	RunBytes int64
	// RunBlockBytes is how much of a run is read at once. Default 64 KiB.
	RunBlockBytes int64
	// LargeBytes is from which size on a body goes to a body file instead of the log.
	// Default 32 KiB.
	LargeBytes int
	// BodyFileBytes is the size of a body file; a larger body gets one of its own.
	// Default 64 MiB.
	BodyFileBytes int64
	// MaxRuns is how many runs there may be before small ones are merged.
	// Default 1024.
	MaxRuns int
	// KeyFilterBytes is the memory for filters that tell which runs do not have a
	// publisher's key, 1.25 bytes a key. Beyond it a look-up reads a page of each run
	// that has keys. Default 64 MiB.
	KeyFilterBytes int64
	// GatherBytes is the memory that Open may take for what it finds in queues
	// before it goes to scratch files; negative: it never does. Default 24 MiB.
	GatherBytes int64
	// TransientBytes is the memory that transient messages may take before the
	// oldest of them are written out to scratch files. Default 64 MiB.
	TransientBytes int64
	// SlackBytes is the garbage the cleaner leaves alone beyond as much as there
	// is live data. Default 4 segments.
	SlackBytes int64
	// ReserveSegments is how many prepared files publishers may not use, so that
	// acknowledgements, moves and the cleaner work on a full disk. Default 2.
	ReserveSegments int
	// SpaceRetry is how long after a refused file creation the next is tried,
	// besides whenever the cleaner frees a file. Default 1 s.
	SpaceRetry time.Duration
	// SpaceChanged, if set, is called when appends begin (true) or cease (false)
	// to be refused with ErrFull. It must not block or call the store.
	SpaceChanged func(full bool)
	// Logger, nil means discard.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 16 << 20
	}
	o.SegmentBytes = max(align(o.SegmentBytes), minSegmentBytes)
	if o.ResidentSegments == 0 {
		o.ResidentSegments = 2
	}
	if o.FrameBytes == 0 {
		o.FrameBytes = 64 << 10
	}
	if o.LazyCommit == 0 {
		o.LazyCommit = 20 * time.Millisecond
	}
	if o.FreshBytes == 0 {
		o.FreshBytes = 32 << 20
	}
	if o.RunBytes == 0 {
		o.RunBytes = 32 << 20
	}
	if o.RunBlockBytes == 0 {
		o.RunBlockBytes = 64 << 10
	}
	if o.LargeBytes == 0 {
		o.LargeBytes = 32 << 10
	}
	if o.BodyFileBytes == 0 {
		o.BodyFileBytes = 64 << 20
	}
	o.BodyFileBytes = alignBlock(o.BodyFileBytes)
	if o.MaxRuns == 0 {
		o.MaxRuns = 1024
	}
	if o.KeyFilterBytes == 0 {
		o.KeyFilterBytes = 64 << 20
	}
	if o.GatherBytes == 0 {
		o.GatherBytes = 24 << 20
	}
	if o.TransientBytes == 0 {
		o.TransientBytes = 64 << 20
	}
	if o.SlackBytes == 0 {
		o.SlackBytes = 4 * o.SegmentBytes
	}
	if o.ReserveSegments == 0 {
		o.ReserveSegments = 2
	}
	if o.SpaceRetry == 0 {
		o.SpaceRetry = time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

const minSegmentBytes = 512

func align(n int64) int64 { return (n + 7) &^ 7 }
