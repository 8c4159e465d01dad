package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/broker"
)

// publishMessage publishes one message, and answers when it is on the disk whether anybody took it.
// Here the default exchange is called amq.default. [rmq management publish]
func publishMessage(c *call) (any, error) {
	var body struct {
		Properties map[string]any `json:"properties"`
		RoutingKey *string        `json:"routing_key"`
		Payload    *string        `json:"payload"`
		Encoding   *string        `json:"payload_encoding"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if err := need(required{"routing_key", body.RoutingKey}, required{"payload", body.Payload},
		required{"payload_encoding", body.Encoding}); err != nil {
		return nil, err
	}
	payload, err := decodePayload(*body.Payload, *body.Encoding)
	if err != nil {
		return nil, err
	}
	properties, err := readProperties(body.Properties)
	if err != nil {
		return nil, err
	}
	s, err := c.session()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	exchange := c.name("name")
	if exchange == "amq.default" {
		exchange = ""
	}
	tx := s.NewPublisher().NewTx()
	m := broker.Message{Exchange: []byte(exchange), RoutingKey: []byte(*body.RoutingKey), Props: properties.Append(nil),
		Properties: properties, Body: payload, Mandatory: true}
	if err := tx.Publish(&m); err != nil {
		return nil, err
	}
	returned, err := tx.Commit()
	if err != nil {
		return nil, err
	}
	return object{"routed": len(returned) == 0}, nil
}

func decodePayload(text, encoding string) ([]byte, error) {
	switch encoding {
	case "string":
		return []byte(text), nil
	case "base64":
		payload, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, badRequest("payload: is no base64: %v", err)
		}
		return payload, nil
	}
	return nil, badRequest("unsupported_encoding: %s", encoding)
}

// property is a text among the properties of a message.
type property struct {
	name string
	flag uint16
	at   *[]byte
}

func textsOf(p *amqp.Properties) []property {
	return []property{
		{"content_type", amqp.FlagContentType, &p.ContentType},
		{"content_encoding", amqp.FlagContentEncoding, &p.ContentEncoding},
		{"correlation_id", amqp.FlagCorrelationID, &p.CorrelationID},
		{"reply_to", amqp.FlagReplyTo, &p.ReplyTo},
		{"expiration", amqp.FlagExpiration, &p.Expiration},
		{"message_id", amqp.FlagMessageID, &p.MessageID},
		{"type", amqp.FlagType, &p.Type},
		{"user_id", amqp.FlagUserID, &p.UserID},
		{"app_id", amqp.FlagAppID, &p.AppID},
		{"cluster_id", amqp.FlagClusterID, &p.ClusterID},
	}
}

// readProperties makes properties of what JSON has. Other names are left alone, as there.
func readProperties(given map[string]any) (*amqp.Properties, error) {
	p := &amqp.Properties{}
	for _, text := range textsOf(p) {
		v, ok := given[text.name]
		if !ok {
			continue
		}
		value := fmt.Sprint(v)
		if len(value) > math.MaxUint8 {
			return nil, badRequest("%s: has %d bytes, %d are allowed", text.name, len(value), math.MaxUint8)
		}
		*text.at = []byte(value)
		p.Set(text.flag)
	}
	for _, number := range []struct {
		name  string
		flag  uint16
		most  int64
		store func(int64)
	}{
		{"delivery_mode", amqp.FlagDeliveryMode, math.MaxUint8, func(n int64) { p.DeliveryMode = uint8(n) }},
		{"priority", amqp.FlagPriority, math.MaxUint8, func(n int64) { p.Priority = uint8(n) }},
		{"timestamp", amqp.FlagTimestamp, math.MaxInt64, func(n int64) { p.Timestamp = uint64(n) }},
	} {
		v, ok := given[number.name]
		if !ok {
			continue
		}
		n, ok := plainNumbers(v).(int64)
		if !ok || n < 0 || n > number.most {
			return nil, badRequest("%s: is %v, must be an integer from 0 to %d", number.name, v, number.most)
		}
		number.store(n)
		p.Set(number.flag)
	}
	return p, readHeaders(p, given["headers"])
}

func readHeaders(p *amqp.Properties, v any) error {
	given, ok := v.(map[string]any)
	if !ok || len(given) == 0 {
		return nil
	}
	encoded, err := amqp.AppendTable(nil, table(given))
	if err != nil {
		return badRequest("headers: %v", err)
	}
	p.SetHeaders(amqp.RawTable(encoded[4:])) // behind the length
	return nil
}

// getMessages takes messages out of a queue to look at them, and settles them as the request says.
// [rmq management get]
func getMessages(c *call) (any, error) {
	var body struct {
		Count    *json.Number `json:"count"`
		AckMode  *string      `json:"ackmode"`
		Encoding *string      `json:"encoding"`
		Truncate *int         `json:"truncate"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if err := need(required{"ackmode", body.AckMode}, required{"count", (*string)(body.Count)},
		required{"encoding", body.Encoding}); err != nil {
		return nil, err
	}
	count, err := strconv.Atoi(string(*body.Count))
	if err != nil || count < 0 {
		return nil, badRequest("count: is %s, must be a whole number", *body.Count)
	}
	if e := *body.Encoding; e != "auto" && e != "base64" {
		return nil, badRequest("Unsupported encoding. Please use auto or base64.")
	}
	settle, ok := settlements()[*body.AckMode]
	if !ok {
		return nil, badRequest("Invalid ackmode value: %s. Valid values are: ack_requeue_true, ack_requeue_false, "+
			"reject_requeue_true, reject_requeue_false", *body.AckMode)
	}
	all := []any{}
	_, err = c.onQueue(func(s *broker.Session, name string) error {
		q, err := s.Queue(name)
		if err != nil {
			return err
		}
		var held []uint64
		defer func() { settle(q, held) }()
		for range count {
			d, left, ok, err := q.Get(false)
			if err != nil || !ok {
				return err
			}
			held = append(held, d.Pos)
			o, err := messageObject(&d, left, *body.Encoding, body.Truncate)
			if err != nil {
				return err
			}
			all = append(all, o)
		}
		return nil
	})
	return all, err
}

// settlements are what becomes of messages that were looked at, by the names of the API.
func settlements() map[string]func(*broker.Queue, []uint64) {
	return map[string]func(*broker.Queue, []uint64){
		"ack_requeue_true":     (*broker.Queue).Return,
		"ack_requeue_false":    (*broker.Queue).Ack,
		"reject_requeue_true":  (*broker.Queue).Requeue,
		"reject_requeue_false": (*broker.Queue).Reject,
	}
}

func messageObject(d *broker.Delivery, left int, encoding string, truncate *int) (object, error) {
	exchange, rest, _ := amqp.CutShortStr(d.Record.ExchangeAndKey)
	key, _, _ := amqp.CutShortStr(rest)
	var p amqp.Properties
	if err := p.Decode(d.Record.Props); err != nil {
		return nil, fmt.Errorf("decode properties of a stored message: %w", err)
	}
	properties, err := propertiesObject(&p)
	if err != nil {
		return nil, err
	}
	payload := d.Record.Body
	if truncate != nil && *truncate >= 0 && *truncate < len(payload) {
		payload = payload[:*truncate]
	}
	text, how := string(payload), "string"
	if encoding == "base64" || !utf8.Valid(payload) {
		text, how = base64.StdEncoding.EncodeToString(payload), "base64"
	}
	return object{
		"exchange": string(exchange), "routing_key": string(key), "redelivered": d.Redelivered, "message_count": left,
		"payload_bytes": len(d.Record.Body), "payload": text, "payload_encoding": how, "properties": properties,
	}, nil
}

// propertiesObject has the properties that the message has; of a message without any it is an empty
// list, as there.
func propertiesObject(p *amqp.Properties) (any, error) {
	o := object{}
	for _, text := range textsOf(p) {
		if p.Has(text.flag) {
			o[text.name] = string(*text.at)
		}
	}
	if p.Has(amqp.FlagDeliveryMode) {
		o["delivery_mode"] = p.DeliveryMode
	}
	if p.Has(amqp.FlagPriority) {
		o["priority"] = p.Priority
	}
	if p.Has(amqp.FlagTimestamp) {
		o["timestamp"] = p.Timestamp
	}
	if p.Has(amqp.FlagHeaders) {
		headers, err := p.Headers.Decode()
		if err != nil {
			return nil, fmt.Errorf("decode headers of a stored message: %w", err)
		}
		o["headers"] = plainTable(headers)
	}
	if len(o) == 0 {
		return []any{}, nil
	}
	return o, nil
}
