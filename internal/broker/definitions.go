package broker

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/policy"
)

// What is durable and no message is a definition of the store: a key and a value. Their forms are
// in docs/FORMATS.md, section Definitions. Names within a key are short strings, so no two names
// collide.
const (
	definitionVersion = 1

	idDefinition   = "id"
	vhostPrefix    = "vhost/"
	exchangePrefix = "exchange/"
	queuePrefix    = "queue/"
	bindingPrefix  = "binding/"
	policyPrefix   = "policy/"
	operatorPrefix = "operator-policy/"

	limitsPrefix   = "vhost-limits/"
	globalPrefix   = "global-parameter/"
	orphanPrefix   = "orphan/"
	remnantPrefix  = "remnant/"
	parkPrefix     = "park/"
	cleanPrefix    = "clean/"
	levelPrefix    = "level/"
	countPrefix    = "count/"
	flagDurable    = 1 << 0 // flags of exchanges and queues
	flagAutoDelete = 1 << 1
	flagInternal   = 1 << 2
)

// errDefinition is a stored definition that cannot be read.
var errDefinition = errors.New("read definition: unknown version or form")

func definitionKey(prefix string, names ...string) string {
	b := []byte(prefix)
	for _, name := range names {
		b = amqp.AppendShortStr(b, name)
	}
	return string(b)
}

func vhostDefinition(vhost string) string       { return definitionKey(vhostPrefix, vhost) }
func exchangeDefinition(vhost, x string) string { return definitionKey(exchangePrefix, vhost, x) }
func queueDefinition(vhost, q string) string    { return definitionKey(queuePrefix, vhost, q) }
func parkDefinition(vhost, reason string) string {
	return definitionKey(parkPrefix, vhost, reason)
}

func orphanDefinition(id uint32) string {
	return string(binary.BigEndian.AppendUint32([]byte(orphanPrefix), id))
}

func remnantDefinition(vhost string, id uint32) string {
	return string(binary.BigEndian.AppendUint32([]byte(definitionKey(remnantPrefix, vhost)), id))
}

func cleanDefinition(id uint32) string {
	return string(binary.BigEndian.AppendUint32([]byte(cleanPrefix), id))
}

func levelDefinition(id uint32, priority int) string {
	b := binary.BigEndian.AppendUint32([]byte(levelPrefix), id)
	return string(append(b, byte(priority)))
}

func countDefinition(id uint32, chunk uint64) string {
	b := binary.BigEndian.AppendUint32([]byte(countPrefix), id)
	return string(binary.BigEndian.AppendUint64(b, chunk))
}

func bindingDefinition(vhost string, k *bindingKey) string {
	kind := byte('q')
	if k.toExchange {
		kind = 'x'
	}
	b := []byte(definitionKey(bindingPrefix, vhost, k.source))
	b = append(b, kind)
	b = amqp.AppendShortStr(b, k.destination)
	hash := sha256.Sum256(amqp.AppendLongStr(amqp.AppendShortStr(nil, k.routingKey), k.args))
	return string(append(b, hash[:16]...))
}

func encodeID(id uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{definitionVersion}, id)
}

func encodePosition(pos uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{definitionVersion}, pos)
}

func encodePositions(all []uint64) []byte {
	b := []byte{definitionVersion}
	for _, pos := range all {
		b = binary.BigEndian.AppendUint64(b, pos)
	}
	return b
}

func encodeExchange(x *Exchange) ([]byte, error) {
	flags := byte(flagDurable)
	if x.autoDelete {
		flags |= flagAutoDelete
	}
	if x.internal {
		flags |= flagInternal
	}
	args, err := encodeArguments(x.args)
	b := binary.BigEndian.AppendUint32([]byte{definitionVersion, flags}, x.id)
	b = amqp.AppendShortStr(b, x.typeName)
	return amqp.AppendLongStr(b, args), err
}

func encodeQueue(q *Queue) ([]byte, error) {
	flags := byte(flagDurable)
	if q.autoDelete {
		flags |= flagAutoDelete
	}
	args, err := encodeArguments(q.args)
	b := binary.BigEndian.AppendUint32([]byte{definitionVersion, flags}, q.id)
	return amqp.AppendLongStr(b, args), err
}

func encodeBinding(k *bindingKey) []byte {
	b := amqp.AppendShortStr([]byte{definitionVersion}, k.routingKey)
	return amqp.AppendLongStr(b, k.args)
}

func encodePolicy(p *policy.Policy) ([]byte, error) {
	settings, err := encodeArguments(amqp.Table(p.Definition))
	b := binary.BigEndian.AppendUint64([]byte{definitionVersion}, math.Float64bits(p.Priority))
	b = amqp.AppendShortStr(b, p.ApplyTo)
	b = amqp.AppendLongStr(b, p.Pattern)
	return amqp.AppendLongStr(b, settings), err
}

// definition reads what the functions above wrote. After the first fault bad is set and all
// reads give zero values.
type definition struct {
	rest []byte
	bad  bool
}

func (d *definition) take(n int) []byte {
	if n > len(d.rest) {
		d.bad = true
		return make([]byte, n)
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

// version checks the first byte of a value.
func (d *definition) version() {
	if d.take(1)[0] != definitionVersion {
		d.bad = true
	}
}

func (d *definition) byte() byte       { return d.take(1)[0] }
func (d *definition) uint32() uint32   { return binary.BigEndian.Uint32(d.take(4)) }
func (d *definition) position() uint64 { return binary.BigEndian.Uint64(d.take(8)) }
func (d *definition) float() float64   { return math.Float64frombits(d.position()) }

func (d *definition) name() string {
	s, rest, ok := amqp.CutShortStr(d.rest)
	if !ok {
		d.bad = true
	}
	d.rest = rest
	return string(s)
}

func (d *definition) text() string {
	s, rest, ok := amqp.CutLongStr(d.rest)
	if !ok {
		d.bad = true
	}
	d.rest = rest
	return string(s)
}

func (d *definition) arguments() amqp.Table {
	s := d.text()
	if s == "" {
		return nil
	}
	args, err := amqp.RawTable(s).Decode()
	if err != nil {
		d.bad = true
	}
	return args
}
