package outbox

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duepost/duepost"
)

// stored is a message in the column message, but for its body, as JSON.
type stored struct {
	Exchange        string               `json:"exchange,omitempty"`
	RoutingKey      string               `json:"routing_key,omitempty"`
	Headers         map[string]headerBox `json:"headers,omitempty"`
	At              *time.Time           `json:"at,omitempty"`
	Key             string               `json:"key,omitempty"`
	MessageID       string               `json:"message_id"`
	CorrelationID   string               `json:"correlation_id,omitempty"`
	ReplyTo         string               `json:"reply_to,omitempty"`
	ContentType     string               `json:"content_type,omitempty"`
	ContentEncoding string               `json:"content_encoding,omitempty"`
	Type            string               `json:"type,omitempty"`
	AppID           string               `json:"app_id,omitempty"`
	Timestamp       time.Time            `json:"timestamp"`
	Priority        uint8                `json:"priority,omitempty"`
	Expiration      time.Duration        `json:"expiration_ns,omitempty"`
	Transient       bool                 `json:"transient,omitempty"`
	DropUnroutable  bool                 `json:"drop_unroutable,omitempty"`
}

// encode checks m, fills in its MessageID, and turns its Delay into an instant.
func encode(m *duepost.Message, now time.Time) ([]byte, error) {
	if m.MessageID == "" {
		m.MessageID = rand.Text()
	}
	if m.Timestamp.IsZero() {
		m.Timestamp = now
	}
	headers, err := boxHeaders(m.Headers)
	err = errors.Join(err,
		refuse(m.Delay < 0, "delay is %v, must not be negative", m.Delay),
		refuse(m.Delay > 0 && !m.At.IsZero(), "both Delay and At are set"),
		refuse(len(m.MessageID) > maxIDBytes, "message id has %d bytes, allowed are %d", len(m.MessageID), maxIDBytes),
		checkTexts(m),
	)
	if err != nil {
		return nil, err
	}
	s := stored{
		Exchange: m.Exchange, RoutingKey: m.RoutingKey, Headers: headers, Key: m.Key, MessageID: m.MessageID,
		CorrelationID: m.CorrelationID, ReplyTo: m.ReplyTo, ContentType: m.ContentType,
		ContentEncoding: m.ContentEncoding, Type: m.Type, AppID: m.AppID, Timestamp: m.Timestamp,
		Priority: m.Priority, Expiration: m.Expiration, Transient: m.Transient, DropUnroutable: m.DropUnroutable,
	}
	due := m.At
	if m.Delay > 0 {
		due = now.Add(m.Delay)
	}
	if !due.IsZero() {
		s.At = &due
	}
	return json.Marshal(s)
}

// checkTexts refuses what JSON or the database would change: texts that are not UTF-8.
func checkTexts(m *duepost.Message) (err error) {
	for name, text := range map[string]string{
		"exchange": m.Exchange, "routing key": m.RoutingKey, "key": m.Key, "message id": m.MessageID,
		"correlation id": m.CorrelationID, "reply to": m.ReplyTo, "content type": m.ContentType,
		"content encoding": m.ContentEncoding, "type": m.Type, "app id": m.AppID,
	} {
		err = errors.Join(err,
			refuse(!utf8.ValidString(text) || strings.ContainsRune(text, 0), "%s %q is not UTF-8 text", name, text),
			refuse(len(text) > 255, "%s has %d bytes, allowed are 255", name, len(text)))
	}
	return err
}

// decode is the message of a row.
func decode(meta, body []byte) (duepost.Message, error) {
	var s stored
	if err := json.Unmarshal(meta, &s); err != nil {
		return duepost.Message{}, fmt.Errorf("decode message: %w", err)
	}
	headers, err := unboxHeaders(s.Headers)
	if err != nil {
		return duepost.Message{}, fmt.Errorf("decode message: %w", err)
	}
	m := duepost.Message{
		Exchange: s.Exchange, RoutingKey: s.RoutingKey, Body: body, Headers: headers, Key: s.Key,
		MessageID: s.MessageID, CorrelationID: s.CorrelationID, ReplyTo: s.ReplyTo,
		ContentType: s.ContentType, ContentEncoding: s.ContentEncoding, Type: s.Type, AppID: s.AppID,
		Timestamp: s.Timestamp, Priority: s.Priority, Expiration: s.Expiration,
		Transient: s.Transient, DropUnroutable: s.DropUnroutable,
	}
	if s.At != nil {
		m.At = *s.At
	}
	return m, nil
}
