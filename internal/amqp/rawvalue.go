package amqp

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math"
	"time"
)

// Field types as RabbitMQ reads and writes them. The specification's own
// letters differ and no client of note follows them. [rmq errata 3]
const (
	TypeBool      byte = 't'
	TypeInt8      byte = 'b'
	TypeUint8     byte = 'B'
	TypeInt16     byte = 's'
	TypeUint16    byte = 'u'
	TypeInt32     byte = 'I'
	TypeUint32    byte = 'i'
	TypeInt64     byte = 'l'
	TypeInt64Alt  byte = 'L' // read like TypeInt64, never written
	TypeFloat32   byte = 'f'
	TypeFloat64   byte = 'd'
	TypeDecimal   byte = 'D'
	TypeString    byte = 'S'
	TypeBytes     byte = 'x'
	TypeArray     byte = 'A'
	TypeTimestamp byte = 'T'
	TypeTable     byte = 'F'
	TypeVoid      byte = 'V'
)

// Sizes that are not a number of octets; see payloadSize.
const (
	sizePrefixed = -1 // a 32-bit length comes first
	sizeUnknown  = -2 // no such type
)

// payloadSize returns the number of octets that follow a type octet.
func payloadSize(t byte) int {
	switch t {
	case TypeString, TypeBytes, TypeArray, TypeTable:
		return sizePrefixed
	case TypeBool, TypeInt8, TypeUint8:
		return 1
	case TypeInt16, TypeUint16:
		return 2
	case TypeInt32, TypeUint32, TypeFloat32:
		return 4
	case TypeInt64, TypeInt64Alt, TypeFloat64, TypeTimestamp:
		return 8
	case TypeDecimal:
		return 5
	case TypeVoid:
		return 0
	}
	return sizeUnknown
}

// TypeName returns RabbitMQ's name of a field type, such as "longstr" for 'S'.
func TypeName(t byte) string {
	switch t {
	case TypeBool:
		return "bool"
	case TypeInt8:
		return "byte"
	case TypeUint8:
		return "unsignedbyte"
	case TypeInt16:
		return "short"
	case TypeUint16:
		return "unsignedshort"
	case TypeInt32:
		return "signedint"
	case TypeUint32:
		return "unsignedint"
	case TypeInt64, TypeInt64Alt:
		return "long"
	case TypeFloat32:
		return "float"
	case TypeFloat64:
		return "double"
	case TypeDecimal:
		return "decimal"
	case TypeString:
		return "longstr"
	case TypeBytes:
		return "binary"
	case TypeArray:
		return "array"
	case TypeTimestamp:
		return "timestamp"
	case TypeTable:
		return "table"
	case TypeVoid:
		return "void"
	}
	return "unknown"
}

// RawValue is a field value as it stands in a table: a view.
type RawValue struct {
	Type byte
	// Data is the payload after the type octet; for strings, byte arrays,
	// arrays and tables after the length.
	Data []byte
}

// cutValue splits src after the value it starts with. It checks the value's
// own extent, not what lies inside an array or a table.
func cutValue(src []byte) (v RawValue, rest []byte, ok bool) {
	if len(src) == 0 {
		return RawValue{}, nil, false
	}
	size := payloadSize(src[0])
	if size == sizePrefixed {
		data, rest, ok := CutLongStr(src[1:])
		return RawValue{src[0], data}, rest, ok
	}
	if size < 0 || len(src) < 1+size {
		return RawValue{}, nil, false
	}
	end := 1 + size
	return RawValue{src[0], src[1:end:end]}, src[end:], true
}

// Int returns the value if it is of an integer type of any width.
func (v RawValue) Int() (n int64, ok bool) {
	if len(v.Data) != payloadSize(v.Type) {
		return 0, false
	}
	switch v.Type {
	case TypeInt8:
		return int64(int8(v.Data[0])), true
	case TypeUint8:
		return int64(v.Data[0]), true
	case TypeInt16:
		return int64(int16(binary.BigEndian.Uint16(v.Data))), true
	case TypeUint16:
		return int64(binary.BigEndian.Uint16(v.Data)), true
	case TypeInt32:
		return int64(int32(binary.BigEndian.Uint32(v.Data))), true
	case TypeUint32:
		return int64(binary.BigEndian.Uint32(v.Data)), true
	case TypeInt64, TypeInt64Alt:
		return int64(binary.BigEndian.Uint64(v.Data)), true
	}
	return 0, false
}

// Float returns the value if it is a float or a double.
func (v RawValue) Float() (f float64, ok bool) {
	switch {
	case v.Type == TypeFloat32 && len(v.Data) == 4:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(v.Data))), true
	case v.Type == TypeFloat64 && len(v.Data) == 8:
		return math.Float64frombits(binary.BigEndian.Uint64(v.Data)), true
	}
	return 0, false
}

// Str returns the octets, a view, if the value is a long string.
func (v RawValue) Str() (s []byte, ok bool) {
	if v.Type != TypeString {
		return nil, false
	}
	return v.Data, true
}

// Bool returns the value if it is a boolean.
func (v RawValue) Bool() (b, ok bool) {
	if v.Type != TypeBool || len(v.Data) != 1 {
		return false, false
	}
	return v.Data[0] != 0, true
}

// Time returns the value if it is a timestamp.
func (v RawValue) Time() (t time.Time, ok bool) {
	if v.Type != TypeTimestamp || len(v.Data) != 8 {
		return time.Time{}, false
	}
	return time.Unix(int64(binary.BigEndian.Uint64(v.Data)), 0).UTC(), true
}

// Table returns the value, a view, if it is a table.
func (v RawValue) Table() (t RawTable, ok bool) {
	if v.Type != TypeTable {
		return nil, false
	}
	return RawTable(v.Data), true
}

// Elements iterates over the values of an array; over nothing if the value is
// no array.
func (v RawValue) Elements() iter.Seq[RawValue] {
	return func(yield func(RawValue) bool) {
		if v.Type != TypeArray {
			return
		}
		for rest := v.Data; len(rest) > 0; {
			e, after, ok := cutValue(rest)
			if !ok || !yield(e) {
				return
			}
			rest = after
		}
	}
}

func (v RawValue) number() (float64, bool) {
	if n, ok := v.Int(); ok {
		return float64(n), true
	}
	return v.Float()
}

// Equal reports whether two values are the same to RabbitMQ's headers exchange:
// numbers by value whatever their type, so that 1 equals 1.0, everything else
// by type and content.
func (v RawValue) Equal(o RawValue) bool {
	if a, ok := v.Int(); ok {
		if b, ok := o.Int(); ok {
			return a == b
		}
	}
	if a, ok := v.number(); ok {
		b, ok := o.number()
		return ok && a == b
	}
	if v.Type != o.Type {
		return false
	}
	if bytes.Equal(v.Data, o.Data) {
		return true
	}
	switch v.Type {
	case TypeBool:
		a, aok := v.Bool()
		b, bok := o.Bool()
		return aok && bok && a == b
	case TypeArray, TypeTable:
		// Rare: the same content may be written in another order or width.
		return EqualValues(v.Decode(), o.Decode())
	}
	return false
}

// append writes the value with its type octet, as in a table or array.
func (v RawValue) append(dst []byte) []byte {
	dst = append(dst, v.Type)
	if payloadSize(v.Type) == sizePrefixed {
		return AppendLongStr(dst, v.Data)
	}
	return append(dst, v.Data...)
}
