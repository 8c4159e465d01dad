package topology

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/management"
)

// Delayed are the delayed exchanges of a virtual host, as the management API tells them.
func Delayed(ctx context.Context, api *management.Client, vhost string) ([]Exchange, error) {
	var all []struct {
		Name       string         `json:"name"`
		Type       string         `json:"type"`
		Durable    bool           `json:"durable"`
		AutoDelete bool           `json:"auto_delete"`
		Internal   bool           `json:"internal"`
		Arguments  map[string]any `json:"arguments"`
	}
	if err := ask(ctx, api, "exchanges/"+management.Path(vhost), &all); err != nil {
		return nil, fmt.Errorf("look at exchanges: %w", err)
	}
	alternates := map[string]string{}
	for _, x := range all {
		alternates[x.Name], _ = x.Arguments[argAlternate].(string)
	}
	var found []Exchange
	for _, x := range all {
		inner, ok := x.Arguments[argDelayedType].(string)
		if ok && x.Type == outerType && alternates[x.Name] == DueExchange(x.Name) {
			found = append(found, Exchange{
				Name: x.Name, Type: inner, Durable: x.Durable, AutoDelete: x.AutoDelete, Internal: x.Internal,
				Alternate: alternates[DueExchange(x.Name)],
			})
		}
	}
	return found, nil
}

// Binding is a binding from an exchange to a queue or another exchange.
type Binding struct {
	Source      string         `json:"source"`
	Destination string         `json:"destination"`
	Kind        string         `json:"destination_type"` // "queue" or "exchange"
	Key         string         `json:"routing_key"`
	Arguments   map[string]any `json:"arguments"`
	Properties  string         `json:"properties_key"` // RabbitMQ's name of it
}

// String says from where to where.
func (b Binding) String() string {
	return fmt.Sprintf("binding of %s %q to exchange %q with key %q", b.Kind, b.Destination, b.Source, b.Key)
}

// ForeignBindings are those of delayed exchanges that are not the relay's: what matches them goes past
// the delay.
func ForeignBindings(ctx context.Context, api *management.Client, vhost string) ([]Binding, error) {
	delayed, err := Delayed(ctx, api, vhost)
	if err != nil {
		return nil, err
	}
	var found []Binding
	for _, x := range delayed {
		var all []Binding
		path := "exchanges/" + management.Path(vhost, x.Name) + "/bindings/source"
		if err := ask(ctx, api, path, &all); err != nil {
			return nil, fmt.Errorf("look at bindings of exchange %q: %w", x.Name, err)
		}
		for _, b := range all {
			if b.Kind != "queue" || b.Destination != Intake {
				found = append(found, b)
			}
		}
	}
	return found, nil
}

// Repair binds delayed exchanges to the intake again that are not, because somebody has deleted the intake
// or the binding: what asks for a delay would go past it. It returns their names. An exchange whose
// other half is gone, with its bindings, is an error that says so.
func Repair(ctx context.Context, conn *amqp.Connection, api *management.Client, vhost string) (repaired []string, err error) {
	delayed, err := Delayed(ctx, api, vhost)
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, x := range delayed {
		var all []Binding
		path := "exchanges/" + management.Path(vhost, x.Name) + "/bindings/source"
		if err := ask(ctx, api, path, &all); err != nil {
			return repaired, fmt.Errorf("look at bindings of exchange %q: %w", x.Name, err)
		}
		if !slices.ContainsFunc(all, func(b Binding) bool { return b.Kind == "queue" && b.Destination == Intake }) {
			if err := Attach(conn, x.Name); err != nil {
				faults = append(faults, err)
				continue
			}
			repaired = append(repaired, x.Name)
		}
		var there *management.Refusal
		var due struct{ Name string }
		err := ask(ctx, api, "exchanges/"+management.Path(vhost, DueExchange(x.Name)), &due)
		switch {
		case errors.As(err, &there) && there.Code == http.StatusNotFound:
			faults = append(faults, fmt.Errorf("exchange %q is gone with its bindings: duepost relay exchange declare %s --type %s, and bind again",
				DueExchange(x.Name), x.Name, x.Type))
		case err != nil:
			faults = append(faults, fmt.Errorf("look at exchanges: %w", err))
		}
	}
	return repaired, errors.Join(faults...)
}

// MoveBinding moves a binding of a delayed exchange to where it belongs: the exchange from which what is
// due goes. It is there before it is taken away here. Both are done by the management API, for
// who unbinds must give the arguments with their types, which are told by nobody.
func MoveBinding(ctx context.Context, api *management.Client, vhost string, b Binding) error {
	body, err := json.Marshal(map[string]any{"routing_key": b.Key, "arguments": b.Arguments})
	if err != nil {
		return fmt.Errorf("move %s: %w", b, err)
	}
	kind := b.Kind[:1]
	for _, q := range []management.Request{
		{Method: http.MethodPost, Path: "bindings/" + management.Path(vhost, "e", DueExchange(b.Source), kind, b.Destination), Body: body},
		{Method: http.MethodDelete, Path: "bindings/" + management.Path(vhost, "e", b.Source, kind, b.Destination, b.Properties)},
	} {
		if _, err := api.Do(ctx, q); err != nil {
			return fmt.Errorf("move %s: %w", b, err)
		}
	}
	return nil
}

// ask reads what is at a path of the management API.
func ask(ctx context.Context, api *management.Client, path string, v any) error {
	body, err := api.Do(ctx, management.Request{Method: http.MethodGet, Path: path})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("read answer of %s: %w", api.URL, err)
	}
	return nil
}
