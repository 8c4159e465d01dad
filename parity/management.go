package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// answer is what the management API said. body is decoded JSON, or the text if it is none.
type answer struct {
	status int
	body   any
}

// call asks the management API. Segments that may have slashes are escaped by the caller.
func (b *broker) call(ctx context.Context, as account, method, path string, body any) (answer, error) {
	var content io.Reader
	if text, ok := body.(string); ok {
		content = strings.NewReader(text)
	} else if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return answer{}, fmt.Errorf("encode body: %w", err)
		}
		content = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+b.HTTPAddr+path, content)
	if err != nil {
		return answer{}, err
	}
	request.SetBasicAuth(as.user, as.password)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: response.StatusCode}
	if json.Unmarshal(raw, &a.body) != nil {
		a.body = string(raw)
	}
	return a, nil
}

// api asks as guest.
func (p *probe) api(method, path string, body any) answer {
	a, err := p.b.call(p.ctx, guest(), method, path, body)
	p.must(err)
	return a
}

// put makes something that must come to be.
func (p *probe) put(path string, body any) {
	if a := p.api(http.MethodPut, path, body); a.status != http.StatusCreated && a.status != http.StatusNoContent {
		p.fatal("PUT %s: %d %v", path, a.status, a.body)
	}
}

// remove deletes something that must be there.
func (p *probe) remove(path string) {
	if a := p.api(http.MethodDelete, path, nil); a.status != http.StatusNoContent {
		p.fatal("DELETE %s: %d %v", path, a.status, a.body)
	}
}

// vhost makes a virtual host in which guest may do everything. It ends with the rule.
func (p *probe) vhost(short string) string {
	name := p.name(short)
	p.put("/api/vhosts/"+name, nil)
	p.ending = append(p.ending, func() {
		p.b.call(p.ctx, guest(), http.MethodDelete, "/api/vhosts/"+name, nil) // only to keep the broker small
	})
	p.grant(guest(), name, ".*", ".*", ".*")
	return name
}

// user makes a user with tags.
func (p *probe) user(short, tags string) account {
	as := account{p.name(short), "secret"}
	p.put("/api/users/"+as.user, map[string]any{"password": as.password, "tags": tags})
	return as
}

func (p *probe) grant(as account, vhost, configure, write, read string) {
	p.put("/api/permissions/"+url.PathEscape(vhost)+"/"+as.user,
		map[string]any{"configure": configure, "write": write, "read": read})
}

// policy sets a policy for the names of this rule that begin with short.
func (p *probe) policy(kind, name, short string, priority int, definition map[string]any) {
	p.put("/api/"+kind+"/%2F/"+p.name(name), map[string]any{
		"pattern": "^" + p.name(short), "priority": priority, "apply-to": "all", "definition": definition})
	p.ending = append(p.ending, func() {
		p.b.call(p.ctx, guest(), http.MethodDelete, "/api/"+kind+"/%2F/"+p.name(name), nil)
	})
}

// show is an answer as one line, keys in order.
func (a answer) show() string {
	raw, err := json.Marshal(a.body)
	if err != nil || a.body == "" {
		return fmt.Sprint(a.status)
	}
	return fmt.Sprintf("%d %s", a.status, raw)
}

// field is the value at the keys as JSON; "absent" if there is none.
func (a answer) field(keys ...string) string {
	v := a.body
	for _, key := range keys {
		object, ok := v.(map[string]any)
		if !ok {
			return "absent"
		}
		if v, ok = object[key]; !ok {
			return "absent"
		}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// shape is the JSON type of a value; of an object all keys with theirs.
func shape(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var keys []string
		for key, value := range v {
			keys = append(keys, key+":"+shape(value))
		}
		slices.Sort(keys)
		return "{" + strings.Join(keys, " ") + "}"
	case []any:
		if len(v) == 0 {
			return "[]"
		}
		return "[" + shape(v[0]) + "]"
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "bool"
	}
	return "null"
}

// fieldSorted is field with the elements of a list in an order that does not depend on the broker.
func (a answer) fieldSorted(key string) string {
	body, _ := a.body.(map[string]any)
	list, ok := body[key].([]any)
	if !ok {
		return a.field(key)
	}
	var all []string
	for _, one := range list {
		all = append(all, answer{body: map[string]any{"one": one}}.field("one"))
	}
	slices.Sort(all)
	return "[" + strings.Join(all, ",") + "]"
}

// longest is the shape of the element that tells most.
func longest(list []any) string {
	text := ""
	for _, one := range list {
		if s := shape(one); len(s) > len(text) {
			text = s
		}
	}
	return text
}

// kind is the shape of a value without what is in it.
func kind(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "list"
	}
	return shape(v)
}
