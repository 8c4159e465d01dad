package wire

import (
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/requirement"
)

// The specification as the client module ships it: AMQP 0-9-1 with RabbitMQ's
// extensions.
type specification struct {
	Domains []struct {
		Name string `xml:"name,attr"`
		Type string `xml:"type,attr"`
	} `xml:"domain"`
	Classes []struct {
		Name    string       `xml:"name,attr"`
		Index   uint16       `xml:"index,attr"`
		Methods []specMethod `xml:"method"`
	} `xml:"class"`
}

type specMethod struct {
	Name    string      `xml:"name,attr"`
	Index   uint16      `xml:"index,attr"`
	Content string      `xml:"content,attr"`
	Fields  []specField `xml:"field"`

	id       MethodID
	fullName string
}

type specField struct {
	Name     string `xml:"name,attr"`
	Domain   string `xml:"domain,attr"`
	Type     string `xml:"type,attr"`
	Reserved bool   `xml:"reserved,attr"`
}

// specMethods reads all methods; Type of each field is resolved.
func specMethods(t *testing.T) []specMethod {
	t.Helper()
	const module = "github.com/rabbitmq/amqp091-go"
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil || len(strings.TrimSpace(string(dir))) == 0 {
		requirement.Missing(t, "the source of "+module, "go mod download")
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)),
		"spec", "amqp0-9-1.stripped.extended.xml"))
	if err != nil {
		t.Fatal(err)
	}
	var s specification
	if err := xml.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	types := map[string]string{}
	for _, d := range s.Domains {
		types[d.Name] = d.Type
	}
	var methods []specMethod
	for _, c := range s.Classes {
		for _, m := range c.Methods {
			m.id = MethodID(uint32(c.Index)<<16 | uint32(m.Index))
			m.fullName = c.Name + "." + m.Name
			for i, f := range m.Fields {
				if f.Domain != "" {
					m.Fields[i].Type = types[f.Domain]
				}
			}
			methods = append(methods, m)
		}
	}
	if len(methods) < 60 {
		t.Fatalf("the specification has %d methods, which is too few to be true", len(methods))
	}
	return methods
}

// goName turns the specification's name of an argument into ours.
func goName(name string) string {
	if name == "nowait" { // confirm.select alone writes it so
		return "NoWait"
	}
	var b strings.Builder
	for part := range strings.SplitSeq(name, "-") {
		if part == "id" {
			b.WriteString("ID")
			continue
		}
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// derived are struct fields that are no argument.
func derived(name string) bool { return name == "ExchangeAndKey" }

func TestEveryMethodOfTheSpecificationHasACodec(t *testing.T) {
	t.Parallel()
	known := map[MethodID]bool{
		// Not in the file; old clients send it and RabbitMQ answers.
		AccessRequestID: true, AccessRequestOkID: true,
	}
	for _, spec := range specMethods(t) {
		known[spec.id] = true
		t.Run(spec.fullName, func(t *testing.T) {
			t.Parallel()
			m, err := New(spec.id)
			if err != nil {
				t.Fatalf("no codec: %v", err)
			}
			if m.ID() != spec.id {
				t.Errorf("id is %#x, want %#x", uint32(m.ID()), uint32(spec.id))
			}
			if got := m.ID().String(); got != spec.fullName {
				t.Errorf("name is %q", got)
			}
			if got, want := spec.id.HasContent(), spec.Content == "1"; got != want {
				t.Errorf("HasContent is %v", got)
			}
			compareFields(t, m, spec)
			for lone := range len(spec.Fields) + 1 {
				compareBytes(t, spec, lone)
			}
		})
	}
	for class := range uint32(256) {
		for method := range uint32(256) {
			id := MethodID(class<<16 | method)
			if _, err := New(id); err == nil && !known[id] {
				t.Errorf("%v is not in the specification", id)
			}
		}
	}
}

// compareFields compares the struct's fields, in order, with the arguments.
func compareFields(t *testing.T, m Method, spec specMethod) {
	t.Helper()
	var got, want []string
	structType := reflect.TypeOf(m).Elem()
	for i := range structType.NumField() {
		if f := structType.Field(i); !derived(f.Name) {
			got = append(got, f.Name)
		}
	}
	for _, f := range spec.Fields {
		if !f.Reserved {
			want = append(want, goName(f.Name))
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("arguments (-specification +struct):\n%s", d)
	}
}

// compareBytes fills the method's arguments with values that tell which is
// which, of the bits only the one with index lone true, and compares its bytes
// with those that follow from the specification alone.
func compareBytes(t *testing.T, spec specMethod, lone int) {
	t.Helper()
	m, err := New(spec.id)
	if err != nil {
		t.Fatal(err)
	}
	filled := reflect.ValueOf(m).Elem()
	var want []byte
	bits, inBits := 0, false // of the octet last in want
	for i, f := range spec.Fields {
		if f.Type != "bit" {
			inBits = false
		}
		target := filled.FieldByName(goName(f.Name))
		text := fmt.Sprintf("%s %d", f.Name, i)
		n := uint64(0x0102030405060708) * uint64(i+1)
		if f.Reserved {
			text, n = "", 0
		} else {
			fill(t, target, f.Type, text, n, i == lone)
		}
		switch f.Type {
		case "octet":
			want = append(want, byte(n))
		case "short":
			want = binary.BigEndian.AppendUint16(want, uint16(n))
		case "long":
			want = binary.BigEndian.AppendUint32(want, uint32(n))
		case "longlong":
			want = binary.BigEndian.AppendUint64(want, n)
		case "shortstr":
			want = append(append(want, byte(len(text))), text...)
		case "longstr":
			want = append(binary.BigEndian.AppendUint32(want, uint32(len(text))), text...)
		case "table":
			want = append(binary.BigEndian.AppendUint32(want, 4), 1, byte('a'+i), 't', 1)
		case "bit":
			if !inBits {
				want, bits, inBits = append(want, 0), 0, true
			}
			if i == lone && !f.Reserved {
				want[len(want)-1] |= 1 << bits
			}
			bits++
		default:
			t.Fatalf("argument %s has type %q, which this test does not know", f.Name, f.Type)
		}
	}
	if got := m.Append(nil); string(got) != string(want) {
		t.Errorf("bit %d: encoded\n got %q\nwant %q", lone, got, want)
	}
	decoded, err := New(spec.id)
	if err != nil {
		t.Fatal(err)
	}
	if err := decoded.Decode(want); err != nil {
		t.Fatalf("decode: %v", err)
	}
	if d := cmp.Diff(m, decoded, cmp.FilterPath(func(p cmp.Path) bool {
		return derived(p.Last().String()[1:])
	}, cmp.Ignore()), equateEmpty()); d != "" {
		t.Errorf("bit %d: decoded (-want +got):\n%s", lone, d)
	}
	refusesOtherLengths(t, spec.id, want)
}

// fill sets a struct field to the value that stands for its argument.
func fill(t *testing.T, v reflect.Value, specType, text string, n uint64, bit bool) {
	t.Helper()
	switch specType {
	case "bit":
		v.SetBool(bit)
	case "octet":
		v.SetUint(uint64(byte(n)))
	case "short":
		v.SetUint(uint64(uint16(n)))
	case "long":
		v.SetUint(uint64(uint32(n)))
	case "longlong":
		v.SetUint(n)
	case "table":
		i := text[strings.LastIndexByte(text, ' ')+1] - '0'
		v.SetBytes([]byte{1, 'a' + i, 't', 1})
	default:
		if v.Kind() == reflect.String {
			v.SetString(text)
			return
		}
		v.SetBytes([]byte(text))
	}
}

func equateEmpty() cmp.Option {
	return cmp.Comparer(func(a, b []byte) bool { return string(a) == string(b) })
}

// refusesOtherLengths checks that arguments cut off anywhere, or followed by
// anything, are an error that names the method.
func refusesOtherLengths(t *testing.T, id MethodID, args []byte) {
	t.Helper()
	for n := range len(args) + 2 {
		if n == len(args) {
			continue
		}
		m, err := New(id)
		if err != nil {
			t.Fatal(err)
		}
		err = m.Decode(append(args, 0)[:n])
		var e *amqp.Error
		if !errors.As(err, &e) || e.Code != amqp.FrameError ||
			e.Class != id.Class() || e.Method != id.Method() {
			t.Errorf("%d octets of %d: got %#v, want an error with code 501 and the method",
				n, len(args), err)
		}
	}
}
