package httpapi

import (
	"encoding/json"
	"errors"

	"github.com/duepost/duepost/internal/auth"
)

func limitsObject(l auth.Limits) object {
	o := object{}
	for name, n := range l {
		o[name] = n
	}
	return o
}

// listUserLimits lists the limits of all users, or of the one that the path names. Users without
// any are left out.
func listUserLimits(c *call) (any, error) {
	users := c.Users.Records().Users
	if name := c.name("user"); name != "" {
		u, ok := c.Users.User(name)
		if !ok {
			return nil, notFound()
		}
		users = []auth.User{u}
	}
	all := rows{}
	for _, u := range users {
		if len(u.Limits) > 0 {
			all = append(all, object{"user": u.Name, "value": limitsObject(u.Limits)})
		}
	}
	return all, nil
}

func putUserLimit(c *call) (any, error) {
	var body struct {
		Value json.RawMessage `json:"value"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	name := c.name("name")
	if len(body.Value) == 0 {
		return nil, badRequest("[{key_missing,value}]")
	}
	var n json.Number
	if body.Value[0] == '"' || json.Unmarshal(body.Value, &n) != nil {
		return nil, badRequest("%s should be a number, actually was %s", name, erlangTerm(body.Value))
	}
	limit, err := n.Int64()
	if err != nil {
		return nil, badRequest("%s should be an integer, actually was %s", name, n)
	}
	if unknown := (auth.Limits{name: limit}).Unknown(); len(unknown) > 0 {
		return nil, badRequest("Unrecognised terms [{<<\"%s\">>,%d}] in user-limits", name, limit)
	}
	return nil, noSuchUser(c.Users.SetLimit(c.name("user"), name, limit), c.name("user"))
}

func deleteUserLimit(c *call) (any, error) {
	return nil, noSuchUser(c.Users.ClearLimit(c.name("user"), c.name("name")), c.name("user"))
}

// noSuchUser is how RabbitMQ tells that the user of a path is none.
func noSuchUser(err error, name string) error {
	if errors.Is(err, auth.ErrUnknownUser) {
		return badRequest("no_such_user: %s", name)
	}
	return err
}

// erlangTerm is a JSON text as RabbitMQ's messages show it; other values as they are.
func erlangTerm(raw json.RawMessage) string {
	if raw[0] == '"' {
		return "<<" + string(raw) + ">>"
	}
	return string(raw)
}
