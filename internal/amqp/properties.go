package amqp

import "encoding/binary"

// Flags of the properties of class basic, in the order they are encoded.
// [amqp basic]
const (
	FlagContentType     uint16 = 1 << 15
	FlagContentEncoding uint16 = 1 << 14
	FlagHeaders         uint16 = 1 << 13
	FlagDeliveryMode    uint16 = 1 << 12
	FlagPriority        uint16 = 1 << 11
	FlagCorrelationID   uint16 = 1 << 10
	FlagReplyTo         uint16 = 1 << 9
	FlagExpiration      uint16 = 1 << 8
	FlagMessageID       uint16 = 1 << 7
	FlagTimestamp       uint16 = 1 << 6
	FlagType            uint16 = 1 << 5
	FlagUserID          uint16 = 1 << 4
	FlagAppID           uint16 = 1 << 3
	FlagClusterID       uint16 = 1 << 2

	// flagsUnused name no property; the lowest would announce more flags.
	flagsUnused uint16 = 1<<1 | 1<<0
)

// Delivery modes of a message. [amqp basic.publish]
const (
	Transient  uint8 = 1
	Persistent uint8 = 2
)

// Properties are the properties of a message: views into the bytes they were
// decoded from. A value is meant to be reused. A field counts only if its flag
// is set.
type Properties struct {
	Flags           uint16
	DeliveryMode    uint8
	Priority        uint8
	Timestamp       uint64 // seconds since 1970
	ContentType     []byte
	ContentEncoding []byte
	Headers         RawTable
	CorrelationID   []byte
	ReplyTo         []byte
	Expiration      []byte // milliseconds in decimal digits
	MessageID       []byte
	Type            []byte
	UserID          []byte
	AppID           []byte
	ClusterID       []byte
}

// Has reports whether all properties of the flags are present.
func (p *Properties) Has(flags uint16) bool { return p.Flags&flags == flags }

// Set makes the properties of the flags present.
func (p *Properties) Set(flags uint16) { p.Flags |= flags }

// Clear makes the properties of the flags absent.
func (p *Properties) Clear(flags uint16) { p.Flags &^= flags }

// IsPersistent reports whether the message asks to survive a restart.
func (p *Properties) IsPersistent() bool {
	return p.Has(FlagDeliveryMode) && p.DeliveryMode == Persistent
}

// SetHeaders replaces the headers; a nil table removes them.
func (p *Properties) SetHeaders(h RawTable) {
	p.Headers = h
	if h == nil {
		p.Clear(FlagHeaders)
		return
	}
	p.Set(FlagHeaders)
}

// Decode reads the property flags and the property list, which must end where
// raw ends. The headers are validated. On error, an *Error with code
// SyntaxError, p holds nothing of use. [amqp 4.2.6.1]
func (p *Properties) Decode(raw []byte) error {
	*p = Properties{}
	if len(raw) < 2 {
		return Errorf(SyntaxError, "decode properties: flags are cut off")
	}
	flags := binary.BigEndian.Uint16(raw)
	if flags&flagsUnused != 0 {
		return Errorf(SyntaxError,
			"decode properties: flags %#04x name a property that class basic does not have", flags)
	}
	p.Flags = flags
	rest, name := p.decodeList(raw[2:])
	if name != "" {
		return Errorf(SyntaxError, "decode properties: %s is cut off", name)
	}
	if len(rest) != 0 {
		return Errorf(SyntaxError, "decode properties: %d octets follow the last property", len(rest))
	}
	if p.Has(FlagHeaders) {
		return p.Headers.Validate()
	}
	return nil
}

// decodeList reads the present properties in the order of their flags. It
// returns the name of the property it found incomplete, if one was.
func (p *Properties) decodeList(src []byte) (rest []byte, incomplete string) {
	ok := true
	if p.Flags&FlagContentType != 0 {
		if p.ContentType, src, ok = CutShortStr(src); !ok {
			return nil, "content-type"
		}
	}
	if p.Flags&FlagContentEncoding != 0 {
		if p.ContentEncoding, src, ok = CutShortStr(src); !ok {
			return nil, "content-encoding"
		}
	}
	if p.Flags&FlagHeaders != 0 {
		var h []byte
		if h, src, ok = CutLongStr(src); !ok {
			return nil, "headers"
		}
		p.Headers = h
	}
	if p.Flags&FlagDeliveryMode != 0 {
		if len(src) < 1 {
			return nil, "delivery-mode"
		}
		p.DeliveryMode, src = src[0], src[1:]
	}
	if p.Flags&FlagPriority != 0 {
		if len(src) < 1 {
			return nil, "priority"
		}
		p.Priority, src = src[0], src[1:]
	}
	if p.Flags&(FlagPriority-1) == 0 {
		return src, "" // most messages end here
	}
	return p.decodeTail(src)
}

// decodeTail reads what comes after the priority.
func (p *Properties) decodeTail(src []byte) (rest []byte, incomplete string) {
	ok := true
	if p.Flags&FlagCorrelationID != 0 {
		if p.CorrelationID, src, ok = CutShortStr(src); !ok {
			return nil, "correlation-id"
		}
	}
	if p.Flags&FlagReplyTo != 0 {
		if p.ReplyTo, src, ok = CutShortStr(src); !ok {
			return nil, "reply-to"
		}
	}
	if p.Flags&FlagExpiration != 0 {
		if p.Expiration, src, ok = CutShortStr(src); !ok {
			return nil, "expiration"
		}
	}
	if p.Flags&FlagMessageID != 0 {
		if p.MessageID, src, ok = CutShortStr(src); !ok {
			return nil, "message-id"
		}
	}
	if p.Flags&FlagTimestamp != 0 {
		if len(src) < 8 {
			return nil, "timestamp"
		}
		p.Timestamp, src = binary.BigEndian.Uint64(src), src[8:]
	}
	if p.Flags&FlagType != 0 {
		if p.Type, src, ok = CutShortStr(src); !ok {
			return nil, "type"
		}
	}
	if p.Flags&FlagUserID != 0 {
		if p.UserID, src, ok = CutShortStr(src); !ok {
			return nil, "user-id"
		}
	}
	if p.Flags&FlagAppID != 0 {
		if p.AppID, src, ok = CutShortStr(src); !ok {
			return nil, "app-id"
		}
	}
	if p.Flags&FlagClusterID != 0 {
		if p.ClusterID, src, ok = CutShortStr(src); !ok {
			return nil, "cluster-id"
		}
	}
	return src, ""
}

// Append appends the property flags and the property list, the form Decode
// reads. Strings beyond MaxShortStr are cut.
func (p *Properties) Append(dst []byte) []byte {
	flags := p.Flags &^ flagsUnused
	dst = binary.BigEndian.AppendUint16(dst, flags)
	if flags&FlagContentType != 0 {
		dst = AppendShortStr(dst, p.ContentType)
	}
	if flags&FlagContentEncoding != 0 {
		dst = AppendShortStr(dst, p.ContentEncoding)
	}
	if flags&FlagHeaders != 0 {
		dst = AppendLongStr(dst, p.Headers)
	}
	if flags&FlagDeliveryMode != 0 {
		dst = append(dst, p.DeliveryMode)
	}
	if flags&FlagPriority != 0 {
		dst = append(dst, p.Priority)
	}
	if flags&FlagCorrelationID != 0 {
		dst = AppendShortStr(dst, p.CorrelationID)
	}
	if flags&FlagReplyTo != 0 {
		dst = AppendShortStr(dst, p.ReplyTo)
	}
	if flags&FlagExpiration != 0 {
		dst = AppendShortStr(dst, p.Expiration)
	}
	if flags&FlagMessageID != 0 {
		dst = AppendShortStr(dst, p.MessageID)
	}
	if flags&FlagTimestamp != 0 {
		dst = binary.BigEndian.AppendUint64(dst, p.Timestamp)
	}
	if flags&FlagType != 0 {
		dst = AppendShortStr(dst, p.Type)
	}
	if flags&FlagUserID != 0 {
		dst = AppendShortStr(dst, p.UserID)
	}
	if flags&FlagAppID != 0 {
		dst = AppendShortStr(dst, p.AppID)
	}
	if flags&FlagClusterID != 0 {
		dst = AppendShortStr(dst, p.ClusterID)
	}
	return dst
}
