package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/duepost/duepost/internal/amqp"
)

// want is a frame to expect.
type want struct {
	frameType uint8
	channel   uint16
	payload   string
}

// sample is a stream of frames of many sizes.
func sample() (stream []byte, frames []want) {
	sizes := []int{0, 1, 7, 100, 4080, 4088, 4089, 9000, 3, 64 << 10, 100_000, 131_064, 1}
	for i, size := range sizes {
		w := want{FrameBody, uint16(i * 4000), strings.Repeat(string(rune('a'+i)), size)}
		frames = append(frames, w)
		stream = AppendFrame(stream, w.frameType, w.channel, []byte(w.payload))
		if i%3 == 0 {
			frames = append(frames, want{FrameHeartbeat, 0, ""})
			stream = AppendHeartbeat(stream)
		}
	}
	return stream, frames
}

func expectFrame(t *testing.T, r *Reader, w want) {
	t.Helper()
	f, err := r.Next()
	if err != nil {
		t.Fatalf("got %v, want a frame of %d octets", err, len(w.payload))
	}
	if f.Type != w.frameType || f.Channel != w.channel || string(f.Payload) != w.payload {
		t.Fatalf("got type %d, channel %d, %d octets; want %d, %d, %d octets",
			f.Type, f.Channel, len(f.Payload), w.frameType, w.channel, len(w.payload))
	}
	if cap(f.Payload) != len(f.Payload) {
		t.Fatalf("appending to the payload would overwrite what follows it")
	}
}

func TestFramesHoweverTheyArrive(t *testing.T) {
	t.Parallel()
	stream, frames := sample()
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"at once":           func(r io.Reader) io.Reader { return r },
		"octet by octet":    iotest.OneByteReader,
		"in halves":         iotest.HalfReader,
		"with EOF in front": iotest.DataErrReader,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := NewReader(wrap(bytes.NewReader(stream)), 128<<10)
			for _, w := range frames {
				expectFrame(t, r, w)
			}
			if _, err := r.Next(); err != io.EOF {
				t.Errorf("at the end: got %v, want io.EOF", err)
			}
		})
	}
}

func TestEndWithinAFrame(t *testing.T) {
	t.Parallel()
	frame := AppendFrame(nil, FrameBody, 1, []byte("body"))
	for n := range frame {
		r := NewReader(bytes.NewReader(append(AppendHeartbeat(nil), frame[:n]...)), 0)
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		wantErr := io.ErrUnexpectedEOF
		if n == 0 {
			wantErr = io.EOF
		}
		if _, err := r.Next(); err != wantErr {
			t.Errorf("after %d octets of a frame: got %v, want %v", n, err, wantErr)
		}
	}
}

func TestWhatIsNoFrame(t *testing.T) {
	t.Parallel()
	badEnd := AppendFrame(nil, FrameMethod, 1, []byte("abc"))
	badEnd[len(badEnd)-1] = 'X'
	for _, tc := range []struct {
		name, stream, want string
	}{
		{"unknown type", "\x04\x00\x00\x00\x00\x00\x00", "unknown frame type 4"},
		{"type 0", "\x00\x00\x00\x00\x00\x00\x00\xce", "unknown frame type 0"},
		{"garbage", "GET / HTTP/1.1\r\n", "unknown frame type 71"},
		{
			"wrong end", string(badEnd),
			"invalid_frame_end_marker: type 1 ends with octet 88 instead of 206",
		},
		{
			"too large", "\x03\x00\x01\x00\x00\x10\x01",
			"frame_too_large: type 3, payload of 4097 octets, 4088 are",
		},
		{"far too large", "\x03\x00\x01\xff\xff\xff\xff", "payload of 4294967295 octets"},
		{
			"heartbeat with payload", "\x08\x00\x00\x00\x00\x00\x01x\xce",
			"heartbeat frame has a payload of 1",
		},
	} {
		r := NewReader(strings.NewReader(tc.stream), 4096)
		_, err := r.Next()
		var e *amqp.Error
		if !errors.As(err, &e) || e.Code != amqp.FrameError || !strings.Contains(e.Text, tc.want) {
			t.Errorf("%s: got %v, want code 501 and %q", tc.name, err, tc.want)
		}
	}
}

func TestFrameMaxIsCountedGenerously(t *testing.T) {
	t.Parallel()
	frame := AppendFrame(nil, FrameBody, 1, make([]byte, 4096))
	r := NewReader(bytes.NewReader(frame), 4096)
	if f, err := r.Next(); err != nil || len(f.Payload) != 4096 {
		t.Errorf("got %d octets and %v, want what a client that forgets the overhead sends",
			len(f.Payload), err)
	}
}

func TestFrameMaxMayChange(t *testing.T) {
	t.Parallel()
	small := AppendFrame(nil, FrameBody, 1, []byte("s"))
	large := AppendFrame(nil, FrameBody, 1, make([]byte, 50_000))
	r := NewReader(bytes.NewReader(append(append(small, large...), large...)), 4096)
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	r.SetMaxFrame(64 << 10)
	if f, err := r.Next(); err != nil || len(f.Payload) != 50_000 {
		t.Fatalf("after raising it: %d octets, %v", len(f.Payload), err)
	}
	r.SetMaxFrame(8 << 10)
	if _, err := r.Next(); err == nil {
		t.Error("after lowering it: no error")
	}
	r = NewReader(bytes.NewReader(large), 0)
	if _, err := r.Next(); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

func TestMemoryFollowsWhatWasReceived(t *testing.T) {
	t.Parallel()
	// 1 GiB is announced and 10 KiB come.
	stream := append([]byte("\x03\x00\x01\x40\x00\x00\x00"), make([]byte, 10<<10)...)
	r := NewReader(iotest.OneByteReader(bytes.NewReader(stream)), 0)
	if _, err := r.Next(); err != io.ErrUnexpectedEOF {
		t.Fatalf("got %v, want io.ErrUnexpectedEOF", err)
	}
	if n := len(r.buf); n > 32<<10 {
		t.Errorf("buffer has %d octets for %d received", n, len(stream))
	}
}

func TestBufferGrowsWithTraffic(t *testing.T) {
	t.Parallel()
	var stream []byte
	for range 100_000 {
		stream = AppendHeartbeat(stream)
	}
	reads := &countingReader{src: bytes.NewReader(stream)}
	r := NewReader(reads, 0)
	for range 100_000 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.buf) != busyBuffer {
		t.Errorf("buffer has %d octets, want %d", len(r.buf), busyBuffer)
	}
	if most := len(stream)/busyBuffer + 10; reads.n > most {
		t.Errorf("%d reads, want at most %d", reads.n, most)
	}
	idle := NewReader(bytes.NewReader(AppendHeartbeat(nil)), 0)
	if _, err := idle.Next(); err != nil || len(idle.buf) != firstBuffer {
		t.Errorf("idle: buffer has %d octets, want %d (%v)", len(idle.buf), firstBuffer, err)
	}
}

type countingReader struct {
	src io.Reader
	n   int
}

func (r *countingReader) Read(p []byte) (int, error) {
	r.n++
	return r.src.Read(p)
}

func TestReadyAndBuffered(t *testing.T) {
	t.Parallel()
	one := AppendFrame(nil, FrameBody, 1, []byte("one"))
	rest := AppendFrame(nil, FrameBody, 1, []byte("two"))
	pieces := []string{
		string(one) + string(one) + string(rest[:5]), string(rest[5:9]), string(rest[9:]),
	}
	r := NewReader(&pieceReader{pieces: pieces}, 0)
	if r.Ready() || r.Buffered() != 0 {
		t.Errorf("before: ready %v, %d buffered", r.Ready(), r.Buffered())
	}
	expectFrame(t, r, want{FrameBody, 1, "one"})
	if !r.Ready() || r.Buffered() != len(one)+5 {
		t.Errorf("after one: ready %v, %d buffered", r.Ready(), r.Buffered())
	}
	expectFrame(t, r, want{FrameBody, 1, "one"})
	if r.Ready() || r.Buffered() != 5 {
		t.Errorf("within a frame's start: ready %v, %d buffered", r.Ready(), r.Buffered())
	}
	expectFrame(t, r, want{FrameBody, 1, "two"})
	if r.Ready() || r.Buffered() != 0 {
		t.Errorf("after all: ready %v, %d buffered", r.Ready(), r.Buffered())
	}
}

// pieceReader gives one piece, or one error, per read.
type pieceReader struct {
	pieces []string
	errs   []error // taken before the piece of that number, if not nil
}

func (r *pieceReader) Read(p []byte) (int, error) {
	if len(r.errs) > 0 {
		err := r.errs[0]
		r.errs = r.errs[1:]
		if err != nil {
			return 0, err
		}
	}
	if len(r.pieces) == 0 {
		return 0, nil
	}
	n := copy(p, r.pieces[0])
	r.pieces = r.pieces[1:]
	return n, nil
}

func TestReadingGoesOnAfterATimeout(t *testing.T) {
	t.Parallel()
	errTimeout := errors.New("deadline")
	frame := string(AppendFrame(nil, FrameBody, 1, []byte("late")))
	r := NewReader(&pieceReader{
		pieces: []string{frame[:4], frame[4:]},
		errs:   []error{nil, errTimeout},
	}, 0)
	if _, err := r.Next(); err != errTimeout {
		t.Fatalf("got %v, want the source's error", err)
	}
	expectFrame(t, r, want{FrameBody, 1, "late"})
}

func TestSourceThatGivesNothing(t *testing.T) {
	t.Parallel()
	if _, err := NewReader(&pieceReader{}, 0).Next(); err != io.ErrNoProgress {
		t.Errorf("got %v, want io.ErrNoProgress", err)
	}
}

func TestProtocolHeader(t *testing.T) {
	t.Parallel()
	for _, header := range []string{ProtocolHeader, "AMQP\x01\x01\x00\x09"} {
		stream := header + string(AppendHeartbeat(nil))
		r := NewReader(iotest.OneByteReader(strings.NewReader(stream)), 0)
		if err := r.ReadProtocolHeader(); err != nil {
			t.Errorf("%q: %v", header, err)
		}
		expectFrame(t, r, want{FrameHeartbeat, 0, ""})
	}
	for stream, hint := range map[string]string{
		"AMQP\x00\x01\x00\x00":         "another version",
		"AMQP\x03\x01\x00\x00":         "another version",
		"GET / HTTP/1.1\r\n\r\n":       "HTTP",
		"\x16\x03\x01\x02\x00\x01":     "TLS",
		"X":                            `got "X"`,
		"AMQP\x00\x00\x09\x00":         "expected AMQP 0-9-1",
		"\x01\x00\x00\x00\x00\x00\x00": "expected AMQP 0-9-1",
	} {
		err := NewReader(strings.NewReader(stream), 0).ReadProtocolHeader()
		var e *HeaderError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), hint) {
			t.Errorf("%q: got %v, want %q in it", stream, err, hint)
		}
	}
	for stream, wantErr := range map[string]error{"": io.EOF, "AMQ": io.ErrUnexpectedEOF} {
		if err := NewReader(strings.NewReader(stream), 0).ReadProtocolHeader(); err != wantErr {
			t.Errorf("%q: got %v, want %v", stream, err, wantErr)
		}
	}
}
