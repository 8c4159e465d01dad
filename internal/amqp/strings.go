package amqp

import "encoding/binary"

// MaxShortStr is the longest short string in octets. [amqp 4.2.5.3]
const MaxShortStr = 255

// AppendShortStr appends a short string. A short string cannot be longer than
// MaxShortStr; what is longer is cut, at a UTF-8 border, so a caller to whom
// that matters checks the length first.
func AppendShortStr[S ~string | ~[]byte](dst []byte, s S) []byte {
	s = cutShort(s)
	dst = append(dst, byte(len(s)))
	return append(dst, s...)
}

// AppendLongStr appends a long string: a 32-bit length and the octets.
func AppendLongStr[S ~string | ~[]byte](dst []byte, s S) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(s)))
	return append(dst, s...)
}

// CutShortStr splits src after the short string it starts with. Both results
// are views of src; ok is false if src is too short.
func CutShortStr(src []byte) (s, rest []byte, ok bool) {
	if len(src) == 0 {
		return nil, nil, false
	}
	end := 1 + int(src[0])
	if len(src) < end {
		return nil, nil, false
	}
	return src[1:end:end], src[end:], true
}

// CutLongStr splits src after the long string, or the table, it starts with.
// Both results are views of src; ok is false if src is too short.
func CutLongStr(src []byte) (s, rest []byte, ok bool) {
	if len(src) < 4 {
		return nil, nil, false
	}
	n := binary.BigEndian.Uint32(src)
	if uint64(n) > uint64(len(src)-4) {
		return nil, nil, false
	}
	end := 4 + int(n)
	return src[4:end:end], src[end:], true
}
