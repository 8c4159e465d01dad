package definitions

import (
	"encoding/json"
	"strings"

	"github.com/duepost/duepost/internal/auth"
	"github.com/duepost/duepost/internal/broker"
)

// parse reads a file about everything. What it returns has the right form and no more: names may
// name nothing.
func (r *reader) parse(data []byte) *Document {
	whole := r.decode(data)
	d := &Document{RabbitVersion: whole.textOr("rabbit_version", "")}
	for _, o := range whole.objects("users") {
		d.Users = append(d.Users, o.user())
	}
	for _, o := range whole.objects("vhosts") {
		d.VHosts = append(d.VHosts, o.vhost())
	}
	for _, o := range whole.objects("permissions") {
		d.Permissions = append(d.Permissions, Permission{User: o.text("user"), VHost: o.text("vhost"),
			Configure: o.text("configure"), Write: o.text("write"), Read: o.text("read"), at: o.at})
	}
	for _, o := range whole.objects("topic_permissions") {
		d.TopicPermissions = append(d.TopicPermissions, TopicPermission{User: o.text("user"),
			VHost: o.text("vhost"), Exchange: o.text("exchange"), Write: o.text("write"), Read: o.text("read"), at: o.at})
	}
	for _, o := range whole.objects("global_parameters") {
		d.GlobalParameters = append(d.GlobalParameters,
			GlobalParameter{Name: o.name("name"), Value: o.raw("value"), at: o.at})
	}
	of := func(o object) string { return o.text("vhost") }
	d.Parameters = whole.parameters(of)
	d.Topology = whole.topology(of)
	return d
}

// parseVHost reads a file about one virtual host. Which one a part of it names does not count.
func (r *reader) parseVHost(vhost string, data []byte) *Document {
	whole := r.decode(data)
	of := func(object) string { return vhost }
	return &Document{Parameters: whole.parameters(of), Topology: whole.topology(of)}
}

func (o object) user() User {
	u := User{
		Name:             o.name("name"),
		PasswordHash:     o.textOr("password_hash", ""),
		HashingAlgorithm: o.textOr("hashing_algorithm", ""),
		Tags:             o.tags(),
		Limits:           o.object("limits").userLimits(),
		at:               o.at,
	}
	if _, ok := o.fields["tags"]; !ok {
		o.fault(o.at, "has no tags")
	}
	if _, ok := o.fields["password"]; ok {
		password := o.text("password")
		u.password = &password
	}
	return u
}

// tags reads a list, or a text with commas, which was the form before RabbitMQ 3.9.
func (o object) tags() []string {
	tags := []string{}
	at := o.at.field("tags")
	switch v := o.fields["tags"].(type) {
	case nil:
	case string:
		for tag := range strings.SplitSeq(v, ",") {
			if tag = strings.TrimSpace(tag); tag != "" {
				tags = append(tags, tag)
			}
		}
	case []any:
		for i, e := range v {
			tag, ok := e.(string)
			if !ok {
				o.fault(at.element(i), "is %s, must be a text", kindOf(e))
			}
			tags = append(tags, tag)
		}
	default:
		o.fault(at, "is %s, must be a list", kindOf(v))
	}
	return tags
}

// vhost reads a virtual host. What is kept about it stands beside its name or in metadata, by
// version.
func (o object) vhost() VHost {
	v := VHost{Name: o.name("name"), tracing: o.flag("tracing", false), at: o.at}
	from := o
	if metadata := o.object("metadata"); len(metadata.fields) > 0 {
		from = metadata
	}
	said := false
	for _, key := range [...]string{"description", "tags", "default_queue_type", "tracing"} {
		_, ok := from.fields[key]
		said = said || ok
	}
	if !said {
		return v
	}
	v.Metadata = &Metadata{
		Description:      from.textOr("description", ""),
		Tags:             from.tags(),
		DefaultQueueType: from.textOr("default_queue_type", ""),
	}
	if v.Metadata.DefaultQueueType == "undefined" {
		v.Metadata.DefaultQueueType = ""
	}
	return v
}

// Components of parameters that there are.
const (
	operatorPolicy = "operator_policy"
	vhostLimits    = "vhost-limits"
)

// parameters reads the parameters. of tells which virtual host a part belongs to.
func (o object) parameters(of func(object) string) (all []Parameter) {
	for _, o := range o.objects("parameters") {
		p := Parameter{Component: o.name("component"), VHost: of(o), Name: o.name("name"),
			at: o.at}
		switch p.Component {
		case operatorPolicy:
			in := o.object("value").policy(p.VHost)
			in.Name = p.Name
			p.policy = &in
		case vhostLimits:
			p.limits = o.object("value").limits()
		}
		all = append(all, p)
	}
	return all
}

// limits reads the limits of a virtual host.
func (o object) limits() broker.VHostLimits {
	l := broker.VHostLimits(o.integers())
	for _, key := range l.Unknown() {
		o.fault(o.at.field(key), "is not a limit of a virtual host")
	}
	return l
}

// userLimits reads the limits of a user.
func (o object) userLimits() auth.Limits {
	l := auth.Limits(o.integers())
	for _, key := range l.Unknown() {
		o.fault(o.at.field(key), "is not a limit of a user")
	}
	return l
}

// integers reads an object that holds nothing else.
func (o object) integers() map[string]int64 {
	all := make(map[string]int64)
	for key, v := range o.fields {
		n, ok := v.(json.Number)
		i, err := n.Int64()
		if !ok || err != nil {
			o.fault(o.at.field(key), "is %s, must be an integer", kindOf(v))
			continue
		}
		all[key] = i
	}
	return all
}

// topology reads what is in virtual hosts.
func (o object) topology(of func(object) string) (t Topology) {
	for _, o := range o.objects("policies") {
		p := o.policy(of(o))
		p.Name = o.name("name")
		t.Policies = append(t.Policies, p)
	}
	for _, o := range o.objects("queues") {
		t.Queues = append(t.Queues, Queue{Name: o.name("name"), VHost: of(o), Durable: o.flag("durable", true),
			AutoDelete: o.flag("auto_delete", false), Arguments: o.arguments(), at: o.at})
	}
	for _, o := range o.objects("exchanges") {
		t.Exchanges = append(t.Exchanges, Exchange{Name: o.short("name"), VHost: of(o), Type: o.text("type"),
			Durable: o.flag("durable", true), AutoDelete: o.flag("auto_delete", false),
			Internal: o.flag("internal", false), Arguments: o.arguments(), at: o.at})
	}
	for _, o := range o.objects("bindings") {
		t.Bindings = append(t.Bindings, Binding{Source: o.name("source"), VHost: of(o),
			Destination: o.name("destination"), DestinationType: o.text("destination_type"),
			RoutingKey: o.short("routing_key"), Arguments: o.arguments(), at: o.at})
	}
	return t
}

// policy reads a policy but for its name.
func (o object) policy(vhost string) Policy {
	definition := o.object("definition")
	if _, ok := o.fields["definition"]; !ok {
		o.fault(o.at, "has no definition")
	}
	return Policy{
		VHost:      vhost,
		Pattern:    o.text("pattern"),
		ApplyTo:    o.textOr("apply-to", ""),
		Priority:   o.float("priority", 0),
		Definition: PlainTable(o.table(definition.at, definition.fields)),
		at:         o.at,
	}
}
