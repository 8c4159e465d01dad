package definitions

import (
	"errors"
	"regexp"

	"github.com/duepost/duepost/internal/auth"
	"github.com/duepost/duepost/internal/broker"
)

// oldVersion are the versions of RabbitMQ that hashed with MD5 and did not say so.
var oldVersion = regexp.MustCompile(`^[0-2]\.|^3\.[0-5]\.`)

// records returns the users of the document and what they may do. The document was checked.
func (d *Document) records() (r auth.Records) {
	for i := range d.Users {
		u, _ := d.Users[i].record(d.RabbitVersion)
		r.Users = append(r.Users, u)
	}
	for i := range d.Permissions {
		r.Permissions = append(r.Permissions, d.Permissions[i].record())
	}
	for i := range d.TopicPermissions {
		r.TopicPermissions = append(r.TopicPermissions, d.TopicPermissions[i].record())
	}
	return r
}

// record returns the user. version is that of the broker which wrote the file.
func (u *User) record(version string) (auth.User, error) {
	r := auth.User{Name: u.Name, Tags: u.Tags, Limits: u.Limits}
	if u.password != nil {
		r.Password = auth.HashPassword(*u.password)
		return r, nil
	}
	algorithm := u.HashingAlgorithm
	if algorithm == "" && oldVersion.MatchString(version) {
		algorithm = string(auth.MD5)
	}
	var err error
	r.Password, err = auth.ParsePasswordHash(algorithm, u.PasswordHash)
	return r, err
}

func (p *Permission) record() auth.Permission {
	return auth.Permission{User: p.User, VHost: p.VHost, Configure: p.Configure, Write: p.Write, Read: p.Read}
}

func (p *TopicPermission) record() auth.TopicPermission {
	return auth.TopicPermission{User: p.User, VHost: p.VHost, Exchange: p.Exchange, Write: p.Write, Read: p.Read}
}

// addRecords adds the users and what they may do to an export.
func (d *Document) addRecords(r auth.Records) {
	for _, u := range r.Users {
		tags, limits := u.Tags, u.Limits
		if tags == nil {
			tags = []string{}
		}
		if limits == nil {
			limits = auth.Limits{}
		}
		d.Users = append(d.Users, User{Name: u.Name, PasswordHash: u.Password.Text,
			HashingAlgorithm: string(u.Password.Algorithm), Tags: tags, Limits: limits})
	}
	for _, p := range r.Permissions {
		d.Permissions = append(d.Permissions, Permission{User: p.User, VHost: p.VHost,
			Configure: p.Configure, Write: p.Write, Read: p.Read})
	}
	for _, p := range r.TopicPermissions {
		d.TopicPermissions = append(d.TopicPermissions, TopicPermission{User: p.User, VHost: p.VHost,
			Exchange: p.Exchange, Write: p.Write, Read: p.Read})
	}
}

// checkRecords notes the faults of users and permissions.
func (c *checker) checkRecords() {
	users := make(map[string]bool)
	for i := range c.doc.Users {
		u := &c.doc.Users[i]
		users[u.Name] = true
		if _, err := u.record(c.doc.RabbitVersion); err != nil {
			c.fault(u.at.field("password_hash"), "%v", err)
		}
	}
	known := func(user string, at place) {
		if _, ok := c.site.Users.User(user); !ok && !users[user] {
			c.fault(at.field("user"), "no such user '%s'", user)
		}
	}
	for i := range c.doc.Permissions {
		p := &c.doc.Permissions[i]
		known(p.User, p.at)
		c.in(p.VHost, p.at)
		r := p.record()
		c.patternFaults(p.at, r.Validate())
	}
	for i := range c.doc.TopicPermissions {
		p := &c.doc.TopicPermissions[i]
		known(p.User, p.at)
		c.in(p.VHost, p.at)
		r := p.record()
		c.patternFaults(p.at, r.Validate())
	}
}

// patternFaults notes what is wrong with the patterns of a permission.
func (c *checker) patternFaults(at place, err error) {
	faults := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		faults = joined.Unwrap()
	}
	for _, err := range faults {
		var bad *auth.PatternError
		if errors.As(err, &bad) {
			c.fault(at.field(bad.Part), "is no regular expression: %v", bad.Err)
		}
	}
}

// putRecords makes users and permissions, those of the user who imports in new virtual hosts among
// them. Of a document without any it leaves no trace: who looks for users later must not take it
// for one that had some.
func (c *checker) putRecords(made []string) error {
	r := c.doc.records()
	if c.site.User != "" {
		var own []auth.Permission
		for _, vhost := range made {
			own = append(own, auth.Permission{User: c.site.User, VHost: vhost, Configure: ".*", Write: ".*", Read: ".*"})
		}
		r.Permissions = append(own, r.Permissions...) // of two the later counts
	}
	if len(r.Users)+len(r.Permissions)+len(r.TopicPermissions) == 0 {
		return nil
	}
	return c.site.Users.Put(r)
}

// metadata returns what the document says of a virtual host.
func (v *VHost) metadata() broker.VHostMetadata {
	if v.Metadata == nil {
		return broker.VHostMetadata{}
	}
	return broker.VHostMetadata{Description: v.Metadata.Description, Tags: v.Metadata.Tags,
		DefaultQueueType: v.Metadata.DefaultQueueType, Tracing: v.tracing}
}

// vhostOf returns a virtual host for an export: without metadata if it has none, as RabbitMQ 3.10.
func vhostOf(v *broker.VHost) VHost {
	m := v.Metadata()
	if m.Description == "" && len(m.Tags) == 0 && m.DefaultQueueType == "" {
		return VHost{Name: v.Name()}
	}
	tags := m.Tags
	if tags == nil {
		tags = []string{}
	}
	return VHost{Name: v.Name(), Metadata: &Metadata{
		Description: m.Description, Tags: tags, DefaultQueueType: m.DefaultQueueType}}
}

// putVHosts makes the virtual hosts that are not there, which it returns, and replaces the metadata
// of those that are if the document says anything of it.
func (c *checker) putVHosts() (made []string, err error) {
	for i := range c.doc.VHosts {
		v := &c.doc.VHosts[i]
		if c.site.Broker.VHost(v.Name) != nil && v.Metadata == nil {
			continue
		}
		if c.site.Broker.VHost(v.Name) == nil {
			if err := c.site.Users.ForgetVHost(v.Name); err != nil {
				return nil, err
			}
		}
		created, err := c.site.Broker.PutVHost(v.Name, v.metadata())
		if err != nil {
			return nil, err
		}
		if created {
			made = append(made, v.Name)
		}
	}
	return made, nil
}
