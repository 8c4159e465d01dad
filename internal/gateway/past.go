package gateway

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/headers"
	"github.com/duepost/duepost/internal/wire"
)

// past rewrites content headers for clients where they tell of what the client must not know: of the
// exchange with the bindings, in the history of a dead-lettered message, and of what the gateway
// wrote into a message that comes back. Its buffers are reused.
type past struct {
	header     wire.ContentHeader
	properties amqp.Properties
	table      []byte
	encoded    []byte
	frame      []byte
}

// Headers of dead-lettered messages. [rmq dlx]
const (
	xDeath        = "x-death"
	deathExchange = "exchange"        // in each entry of x-death
	endExchange   = "-death-exchange" // x-first-death-exchange, x-last-death-exchange
)

// isIn reports whether a content header may tell of an exchange with bindings in its history.
func (p *past) isIn(frame []byte) bool {
	return bytes.Contains(frame, []byte(xDeath)) && bytes.Contains(frame, []byte(dueSuffix))
}

// restore returns the frame in its stead, nil if it stays. known is [downward.knownName].
func (p *past) restore(h head, frame []byte, returned bool, known func([]byte) ([]byte, bool)) []byte {
	if p.header.Decode(payload(frame)) != nil || len(p.header.Properties) < 2 ||
		p.properties.Decode(p.header.Properties) != nil || !p.properties.Has(amqp.FlagHeaders) {
		return nil
	}
	changed := false
	p.table = p.table[:0]
	for key, v := range p.properties.Headers.All() {
		name := string(key)
		switch {
		case returned && (name == headers.Accepted || name == headers.HeldBCC || name == headers.HeldExpiration):
			changed = true
			p.takeBack(name, v)
			continue
		case name == xDeath && v.Type == amqp.TypeArray:
			v.Data = withoutSuffixes(v, known)
			changed = true
		case strings.HasSuffix(name, endExchange):
			v = withoutSuffix(v, known)
			changed = true
		}
		p.table = amqp.AppendRawField(p.table, name, v)
	}
	if !changed {
		return nil
	}
	p.properties.SetHeaders(p.table)
	p.encoded = p.properties.Append(p.encoded[:0])
	p.frame = wire.AppendContentHeader(p.frame[:0], h.channel, p.header.Class, p.header.BodySize, p.encoded)
	return p.frame
}

// takeBack puts what the gateway had kept in a header back where it was.
func (p *past) takeBack(name string, v amqp.RawValue) {
	switch name {
	case headers.HeldBCC:
		p.table = amqp.AppendRawField(p.table, headers.BCC, v)
	case headers.HeldExpiration:
		p.properties.Expiration = v.Data
		p.properties.Set(amqp.FlagExpiration)
	}
}

// withoutSuffixes returns the entries of x-death with the names that clients know.
func withoutSuffixes(deaths amqp.RawValue, known func([]byte) ([]byte, bool)) []byte {
	var all []byte
	for entry := range deaths.Elements() {
		table, ok := entry.Table()
		if !ok {
			return deaths.Data
		}
		var b []byte
		for key, v := range table.All() {
			if string(key) == deathExchange {
				v = withoutSuffix(v, known)
			}
			b = amqp.AppendRawField(b, key, v)
		}
		all = append(all, amqp.TypeTable)
		all = binary.BigEndian.AppendUint32(all, uint32(len(b)))
		all = append(all, b...)
	}
	return all
}

func withoutSuffix(v amqp.RawValue, known func([]byte) ([]byte, bool)) amqp.RawValue {
	if name, ok := v.Str(); ok {
		if name, ok = known(name); ok {
			v.Data = name
		}
	}
	return v
}
