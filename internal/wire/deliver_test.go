package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost/internal/amqp"
)

// received is content as a client puts it together.
type received struct {
	Method Method
	Props  string
	Body   string
	Frames int
}

// receive reads frames with limit frameMax, strictly, and puts them together.
func receive(t *testing.T, stream []byte, channel uint16, frameMax uint32) []received {
	t.Helper()
	var all []received
	var left uint64
	r := NewReader(bytes.NewReader(stream), frameMax)
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if frameMax != 0 && len(f.Payload)+FrameOverhead > int(frameMax) {
			t.Fatalf("frame of %d octets, %d are allowed", len(f.Payload)+FrameOverhead, frameMax)
		}
		if f.Channel != channel {
			t.Fatalf("frame on channel %d, want %d", f.Channel, channel)
		}
		last := &received{}
		if len(all) > 0 {
			last = &all[len(all)-1]
		}
		switch f.Type {
		case FrameMethod:
			m, err := Parse(bytes.Clone(f.Payload))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, received{Method: m, Frames: 1})
		case FrameHeader:
			var h ContentHeader
			if err := h.Decode(f.Payload); err != nil {
				t.Fatal(err)
			}
			last.Props, left = string(h.Properties), h.BodySize
			last.Frames++
		case FrameBody:
			if len(f.Payload) == 0 || uint64(len(f.Payload)) > left {
				t.Fatalf("body frame of %d octets, %d are missing", len(f.Payload), left)
			}
			left -= uint64(len(f.Payload))
			last.Body += string(f.Payload)
			last.Frames++
		}
	}
	if left != 0 {
		t.Fatalf("%d octets of the body are missing", left)
	}
	return all
}

func TestWholeContents(t *testing.T) {
	t.Parallel()
	const props = "\x10\x00\x02"
	names := []byte("\x02ex\x03key")
	for _, tc := range []struct {
		size     int
		frameMax uint32
		frames   int
	}{
		{0, 4096, 2}, {1, 4096, 3}, {4088, 4096, 3}, {4089, 4096, 4}, {3 * 4088, 4096, 5},
		{3*4088 + 1, 4096, 6}, {200_000, 0, 3}, {200_000, 128 << 10, 4}, {10_000, 100, 5},
	} {
		body := strings.Repeat("b", tc.size)
		frameMax := tc.frameMax
		if frameMax != 0 {
			frameMax = max(frameMax, MinFrameMax)
		}
		for _, kind := range []struct {
			method Method
			stream []byte
		}{
			{
				&BasicDeliver{"tag", 1 << 40, true, []byte("ex"), []byte("key")},
				AppendDeliver(nil, 7, "tag", 1<<40, true, names, []byte(props), []byte(body), tc.frameMax),
			},
			{
				&BasicGetOk{9, false, []byte("ex"), []byte("key"), 12},
				AppendGetOk(nil, 7, 9, false, 12, names, []byte(props), []byte(body), tc.frameMax),
			},
			{
				&BasicReturn{312, "NO_ROUTE", []byte("ex"), []byte("key")},
				AppendReturn(nil, 7, amqp.NoRoute, "NO_ROUTE", names, []byte(props), []byte(body), tc.frameMax),
			},
		} {
			want := []received{{kind.method, props, body, tc.frames}}
			if d := cmp.Diff(want, receive(t, kind.stream, 7, frameMax)); d != "" {
				t.Errorf("%d octets, frame-max %d (-want +got):\n%.600s", tc.size, tc.frameMax, d)
			}
		}
	}
}

func TestDeliveriesAppendToWhatIsThere(t *testing.T) {
	t.Parallel()
	names, noProps := []byte("\x00\x01q"), []byte("\x00\x00")
	var stream []byte
	for tag := range uint64(3) {
		stream = AppendDeliver(stream, 1, "c", tag, false, names, noProps, []byte("body"), 4096)
	}
	got := receive(t, stream, 1, 4096)
	if len(got) != 3 {
		t.Fatalf("got %d deliveries, want 3", len(got))
	}
	for tag, r := range got {
		d := r.Method.(*BasicDeliver)
		if d.DeliveryTag != uint64(tag) || string(d.RoutingKey) != "q" || r.Body != "body" {
			t.Errorf("delivery %d is %+v", tag, r)
		}
	}
}

func TestDeliveryNeedsOneGrowth(t *testing.T) {
	t.Parallel()
	names, noProps := []byte("\x00\x01q"), []byte("\x00\x00")
	for _, size := range []int{0, 1, 4088, 4089, 100_000} {
		body := make([]byte, size)
		into := func(dst []byte) []byte {
			return AppendDeliver(dst, 1, "c", 1, false, names, noProps, body, 4096)
		}
		stream := into(nil)
		again := into(make([]byte, 0, len(stream)))
		if cap(again) != len(stream) {
			t.Errorf("body of %d octets: the size was reckoned as more than %d", size, len(stream))
		}
	}
}

func TestSettlements(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		got  []byte
		want Method
	}{
		{AppendAck(nil, 5, 1<<63, true), &BasicAck{1 << 63, true}},
		{AppendAck(nil, 5, 1, false), &BasicAck{1, false}},
		{AppendNack(nil, 5, 2, true), &BasicNack{2, true, false}},
		{AppendNack(nil, 5, 2, false), &BasicNack{2, false, false}},
	} {
		if want := AppendMethod(nil, 5, tc.want); !bytes.Equal(tc.got, want) {
			t.Errorf("%+v: got %q, want %q", tc.want, tc.got, want)
		}
	}
}
