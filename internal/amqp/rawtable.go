package amqp

import (
	"iter"
	"strconv"
)

// MaxDepth is how deep tables and arrays may nest: a table is at depth 1, a
// table or array in it at depth 2. The limit bounds recursion here and in
// every client that reads the table later.
const MaxDepth = 32

// RawTable is the encoded pairs of a table without the 32-bit length in
// front: a view. The zero value is an empty table.
type RawTable []byte

// cutField splits src after the pair it starts with.
func cutField(src []byte) (key []byte, v RawValue, rest []byte, ok bool) {
	key, rest, ok = CutShortStr(src)
	if !ok {
		return nil, RawValue{}, nil, false
	}
	v, rest, ok = cutValue(rest)
	return key, v, rest, ok
}

// Validate reports whether the table can be read to its end: complete fields,
// known types, nesting within MaxDepth. The error is an *Error with code
// SyntaxError that names the field.
func (t RawTable) Validate() error {
	if f := checkPairs(t, 1); f != nil {
		return f.asError()
	}
	return nil
}

// All iterates over the pairs in the order they were written. Keys and values
// are views. It ends at the first malformed pair.
func (t RawTable) All() iter.Seq2[[]byte, RawValue] {
	return func(yield func([]byte, RawValue) bool) {
		for rest := []byte(t); len(rest) > 0; {
			key, v, after, ok := cutField(rest)
			if !ok || !yield(key, v) {
				return
			}
			rest = after
		}
	}
}

// Lookup returns the value of the first pair with that key.
func (t RawTable) Lookup(key string) (v RawValue, ok bool) {
	for rest := []byte(t); len(rest) > 0; {
		k, v, after, ok := cutField(rest)
		if !ok {
			return RawValue{}, false
		}
		if string(k) == key {
			return v, true
		}
		rest = after
	}
	return RawValue{}, false
}

// AppendWithout appends all pairs except those with one of the keys, in their
// order and byte for byte. The result is again a RawTable's content.
func (t RawTable) AppendWithout(dst []byte, keys ...string) []byte {
	for rest := []byte(t); len(rest) > 0; {
		k, _, after, ok := cutField(rest)
		if !ok {
			return dst
		}
		if !contains(keys, k) {
			dst = append(dst, rest[:len(rest)-len(after)]...)
		}
		rest = after
	}
	return dst
}

// AppendRawField appends one pair from its parts, without any length around it.
func AppendRawField[S ~string | ~[]byte](dst []byte, key S, v RawValue) []byte {
	return v.append(AppendShortStr(dst, key))
}

func contains(keys []string, k []byte) bool {
	for _, key := range keys {
		if string(k) == key {
			return true
		}
	}
	return false
}

// fault is a malformed field: what is wrong, and the way to it, which grows
// from the inside out while the walk returns.
type fault struct {
	path string
	text string
}

func (f *fault) asError() error {
	if f.path == "" {
		return Errorf(SyntaxError, "decode table: %s", f.text)
	}
	return Errorf(SyntaxError, "decode table: field '%s': %s", printable(f.path), f.text)
}

// inKey says that the fault lies in the value of key.
func (f *fault) inKey(key []byte) *fault {
	switch {
	case f.path == "":
		f.path = string(key)
	case f.path[0] == '[':
		f.path = string(key) + f.path
	default:
		f.path = string(key) + "." + f.path
	}
	return f
}

// inElement says that the fault lies in the i-th element of an array.
func (f *fault) inElement(i int) *fault {
	index := "[" + strconv.Itoa(i) + "]"
	if f.path != "" && f.path[0] != '[' {
		index += "."
	}
	f.path = index + f.path
	return f
}

// checkPairs walks the pairs of a table at the given depth.
func checkPairs(src []byte, depth int) *fault {
	for len(src) > 0 {
		key, rest, ok := CutShortStr(src)
		if !ok {
			return &fault{text: "field name is cut off"}
		}
		rest, f := checkValue(rest, depth)
		if f != nil {
			return f.inKey(key)
		}
		src = rest
	}
	return nil
}

// checkElements walks the values of an array at the given depth.
func checkElements(src []byte, depth int) *fault {
	for i := 0; len(src) > 0; i++ {
		rest, f := checkValue(src, depth)
		if f != nil {
			return f.inElement(i)
		}
		src = rest
	}
	return nil
}

// checkValue checks the value src starts with and returns what follows it.
func checkValue(src []byte, depth int) (rest []byte, f *fault) {
	v, rest, ok := cutValue(src)
	if !ok {
		return nil, valueFault(src)
	}
	if v.Type != TypeTable && v.Type != TypeArray {
		return rest, nil
	}
	if depth == MaxDepth {
		return nil, &fault{text: "nested too deep, " + strconv.Itoa(MaxDepth) + " levels are allowed"}
	}
	if v.Type == TypeTable {
		return rest, checkPairs(v.Data, depth+1)
	}
	return rest, checkElements(v.Data, depth+1)
}

// valueFault says why cutValue refused src.
func valueFault(src []byte) *fault {
	if len(src) == 0 {
		return &fault{text: "value is missing"}
	}
	if payloadSize(src[0]) == sizeUnknown {
		return &fault{text: "unknown type " + strconv.QuoteRuneToASCII(rune(src[0])) +
			", allowed are t b B s u I i l L f d D S x A T F V"}
	}
	return &fault{text: "value of type " + TypeName(src[0]) + " is cut off"}
}

// printable makes a path safe and short enough for a reply text or a log.
func printable(path string) string {
	const most = 120
	if len(path) > most {
		path = path[:most] + "..."
	}
	q := strconv.QuoteToASCII(path)
	return q[1 : len(q)-1]
}
