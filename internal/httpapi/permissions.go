package httpapi

import "github.com/duepost/duepost/internal/auth"

func permissionObject(p *auth.Permission) object {
	return object{"user": p.User, "vhost": p.VHost, "configure": p.Configure, "write": p.Write, "read": p.Read}
}

func topicObject(p *auth.TopicPermission) object {
	return object{"user": p.User, "vhost": p.VHost, "exchange": p.Exchange, "write": p.Write, "read": p.Read}
}

// permissionRows are those of a user, of a virtual host, or all.
func (c *call) permissionRows() (any, error) {
	all := rows{}
	for _, p := range c.Users.Records().Permissions {
		if c.isAbout(p.User, p.VHost) {
			all = append(all, permissionObject(&p))
		}
	}
	return all, nil
}

func (c *call) topicRows() (any, error) {
	all := rows{}
	for _, p := range c.Users.Records().TopicPermissions {
		if c.isAbout(p.User, p.VHost) {
			all = append(all, topicObject(&p))
		}
	}
	return all, nil
}

// isAbout reports whether a permission is one that the path asks for.
func (c *call) isAbout(user, vhost string) bool {
	askedUser, askedVHost := c.name("user"), c.name("vhost")
	return (askedUser == "" || askedUser == user) && (askedVHost == "" || askedVHost == vhost)
}

func listPermissions(c *call) (any, error) { return c.permissionRows() }
func listTopics(c *call) (any, error)      { return c.topicRows() }

func listVHostPermissions(c *call) (any, error) { return c.ofVHost(c.permissionRows) }
func listVHostTopics(c *call) (any, error)      { return c.ofVHost(c.topicRows) }

func (c *call) ofVHost(rows func() (any, error)) (any, error) {
	if c.Broker.VHost(c.name("vhost")) == nil {
		return nil, notFound()
	}
	return rows()
}

func listUserPermissions(c *call) (any, error) { return c.ofUser(c.permissionRows) }
func listUserTopics(c *call) (any, error)      { return c.ofUser(c.topicRows) }

func (c *call) ofUser(rows func() (any, error)) (any, error) {
	if _, known := c.Users.User(c.name("user")); !known {
		return nil, notFound()
	}
	return rows()
}

func showPermission(c *call) (any, error) {
	p, ok := c.Users.Permission(c.name("user"), c.name("vhost"))
	if !ok {
		return nil, notFound()
	}
	return permissionObject(&p), nil
}

func putPermission(c *call) (any, error) {
	var body struct{ Configure, Write, Read *string }
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	err := need(required{"configure", body.Configure}, required{"write", body.Write}, required{"read", body.Read})
	if err != nil {
		return nil, err
	}
	user, vhost := c.name("user"), c.name("vhost")
	if c.Broker.VHost(vhost) == nil {
		return nil, badRequest("vhost_or_user_not_found")
	}
	_, existed := c.Users.Permission(user, vhost)
	return madeIf(!existed), c.Users.Put(auth.Records{Permissions: []auth.Permission{
		{User: user, VHost: vhost, Configure: *body.Configure, Write: *body.Write, Read: *body.Read}}})
}

func deletePermission(c *call) (any, error) {
	return nil, foundOr(c.Users.DeletePermission(c.name("user"), c.name("vhost")))
}

// foundOr is 404 for what was not there.
func foundOr(existed bool, err error) error {
	if err == nil && !existed {
		return notFound()
	}
	return err
}

func showTopics(c *call) (any, error) {
	found, err := c.topicRows()
	if all, ok := found.(rows); ok && len(all) == 0 {
		return nil, notFound()
	}
	return found, err
}

func putTopic(c *call) (any, error) {
	var body struct{ Exchange, Write, Read *string }
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	err := need(required{"exchange", body.Exchange}, required{"write", body.Write}, required{"read", body.Read})
	if err != nil {
		return nil, err
	}
	user, vhost := c.name("user"), c.name("vhost")
	if c.Broker.VHost(vhost) == nil {
		return nil, badRequest("vhost_or_user_not_found")
	}
	found, err := c.topicRows()
	if err != nil {
		return nil, err
	}
	all, _ := found.(rows)
	return madeIf(len(all) == 0), c.Users.Put(auth.Records{TopicPermissions: []auth.TopicPermission{
		{User: user, VHost: vhost, Exchange: *body.Exchange, Write: *body.Write, Read: *body.Read}}})
}

func deleteTopics(c *call) (any, error) {
	return nil, foundOr(c.Users.DeleteTopicPermissions(c.name("user"), c.name("vhost")))
}

func deleteTopic(c *call) (any, error) {
	return nil, foundOr(c.Users.DeleteTopicPermission(c.name("user"), c.name("vhost"), c.name("exchange")))
}
