package amqp

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Table is a decoded field table. Values are of the types bool, int8, uint8,
// int16, uint16, int32, uint32, int64, float32, float64, Decimal, string,
// []byte, []any, time.Time, Table, or nil.
//
// Encoding also takes int, uint, uint64 (as a 64-bit integer, if it fits),
// map[string]any, RawTable and RawValue.
type Table map[string]any

// Decimal is a number of Value / 10^Scale. [amqp 4.2.5.5]
type Decimal struct {
	Scale uint8
	Value int32
}

// Decode copies the table out of its bytes. Of several pairs with one key the
// first counts, as in Lookup. It fails as Validate does.
func (t RawTable) Decode() (Table, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return decodePairs(t), nil
}

// decodePairs copies a table that was validated; its depth is bounded.
func decodePairs(t RawTable) Table {
	out := make(Table)
	for key, v := range t.All() {
		if _, dup := out[string(key)]; !dup {
			out[string(key)] = v.Decode()
		}
	}
	return out
}

// Decode copies the value out of its bytes, as one of the types of Table. The
// table it came from was validated.
func (v RawValue) Decode() any {
	if len(v.Data) < payloadSize(v.Type) {
		return nil
	}
	switch v.Type {
	case TypeBool:
		return v.Data[0] != 0
	case TypeInt8:
		return int8(v.Data[0])
	case TypeUint8:
		return v.Data[0]
	case TypeInt16:
		return int16(binary.BigEndian.Uint16(v.Data))
	case TypeUint16:
		return binary.BigEndian.Uint16(v.Data)
	case TypeInt32:
		return int32(binary.BigEndian.Uint32(v.Data))
	case TypeUint32:
		return binary.BigEndian.Uint32(v.Data)
	case TypeInt64, TypeInt64Alt:
		return int64(binary.BigEndian.Uint64(v.Data))
	case TypeFloat32:
		return math.Float32frombits(binary.BigEndian.Uint32(v.Data))
	case TypeFloat64:
		return math.Float64frombits(binary.BigEndian.Uint64(v.Data))
	case TypeDecimal:
		return Decimal{v.Data[0], int32(binary.BigEndian.Uint32(v.Data[1:]))}
	case TypeString:
		return string(v.Data)
	case TypeBytes:
		return append([]byte{}, v.Data...)
	case TypeArray:
		out := []any{}
		for e := range v.Elements() {
			out = append(out, e.Decode())
		}
		return out
	case TypeTimestamp:
		t, _ := v.Time()
		return t
	case TypeTable:
		return decodePairs(v.Data)
	}
	return nil
}

// AppendTable appends t with its 32-bit length. Keys are written in ascending
// order, so that equal tables have equal bytes.
func AppendTable(dst []byte, t Table) ([]byte, error) {
	return appendPairs(dst, t, 1)
}

// AppendField appends one pair, without any length around it.
func AppendField(dst []byte, key string, v any) ([]byte, error) {
	return appendField(dst, key, v, 1)
}

func appendPairs(dst []byte, t Table, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("nested too deep, %d levels are allowed", MaxDepth)
	}
	dst, start := beginLength(dst)
	var err error
	for _, key := range slices.Sorted(maps.Keys(t)) {
		if dst, err = appendField(dst, key, t[key], depth); err != nil {
			return nil, err
		}
	}
	return endLength(dst, start)
}

func appendArray(dst []byte, a []any, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("nested too deep, %d levels are allowed", MaxDepth)
	}
	dst, start := beginLength(dst)
	var err error
	for i, v := range a {
		if dst, err = appendValue(dst, v, depth); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return endLength(dst, start)
}

func appendField(dst []byte, key string, v any, depth int) ([]byte, error) {
	if len(key) > MaxShortStr {
		return nil, fmt.Errorf("encode field '%.20s...': name has %d octets, %d are allowed",
			key, len(key), MaxShortStr)
	}
	dst = AppendShortStr(dst, key)
	dst, err := appendValue(dst, v, depth)
	if err != nil {
		return nil, fmt.Errorf("encode field '%s': %w", key, err)
	}
	return dst, nil
}

// appendValue appends the type octet and the value.
func appendValue(dst []byte, v any, depth int) ([]byte, error) {
	be := binary.BigEndian
	switch v := v.(type) {
	case nil:
		return append(dst, TypeVoid), nil
	case bool:
		if v {
			return append(dst, TypeBool, 1), nil
		}
		return append(dst, TypeBool, 0), nil
	case int8:
		return append(dst, TypeInt8, byte(v)), nil
	case uint8:
		return append(dst, TypeUint8, v), nil
	case int16:
		return be.AppendUint16(append(dst, TypeInt16), uint16(v)), nil
	case uint16:
		return be.AppendUint16(append(dst, TypeUint16), v), nil
	case int32:
		return be.AppendUint32(append(dst, TypeInt32), uint32(v)), nil
	case uint32:
		return be.AppendUint32(append(dst, TypeUint32), v), nil
	case int64:
		return be.AppendUint64(append(dst, TypeInt64), uint64(v)), nil
	case int:
		return be.AppendUint64(append(dst, TypeInt64), uint64(v)), nil
	case uint:
		return appendUnsigned(dst, uint64(v))
	case uint64:
		return appendUnsigned(dst, v)
	case float32:
		return be.AppendUint32(append(dst, TypeFloat32), math.Float32bits(v)), nil
	case float64:
		return be.AppendUint64(append(dst, TypeFloat64), math.Float64bits(v)), nil
	case Decimal:
		return be.AppendUint32(append(dst, TypeDecimal, v.Scale), uint32(v.Value)), nil
	case string:
		return AppendLongStr(append(dst, TypeString), v), nil
	case []byte:
		return AppendLongStr(append(dst, TypeBytes), v), nil
	case []any:
		return appendArray(append(dst, TypeArray), v, depth+1)
	case time.Time:
		return be.AppendUint64(append(dst, TypeTimestamp), uint64(v.Unix())), nil
	case Table:
		return appendPairs(append(dst, TypeTable), v, depth+1)
	case map[string]any:
		return appendPairs(append(dst, TypeTable), v, depth+1)
	case RawTable:
		return AppendLongStr(append(dst, TypeTable), v), nil
	case RawValue:
		return v.append(dst), nil
	}
	return nil, fmt.Errorf("type %T has no AMQP field type", v)
}

func appendUnsigned(dst []byte, v uint64) ([]byte, error) {
	if v > math.MaxInt64 {
		return nil, fmt.Errorf("%d does not fit a signed 64-bit integer", v)
	}
	return binary.BigEndian.AppendUint64(append(dst, TypeInt64), v), nil
}

// beginLength reserves a 32-bit length that endLength fills in.
func beginLength(dst []byte) (grown []byte, start int) {
	return append(dst, 0, 0, 0, 0), len(dst)
}

func endLength(dst []byte, start int) ([]byte, error) {
	n := len(dst) - start - 4
	if uint64(n) > math.MaxUint32 {
		return nil, fmt.Errorf("%d octets do not fit a 32-bit length", n)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(n))
	return dst, nil
}
