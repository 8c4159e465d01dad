package httpapi

import (
	"encoding/json"

	"github.com/duepost/duepost/internal/auth"
)

func whoAmI(c *call) (any, error) {
	return object{"name": c.user.Name, "tags": list(c.user.Tags)}, nil
}

func userObject(u *auth.User) object {
	return object{
		"name": u.Name, "password_hash": u.Password.Text, "hashing_algorithm": u.Password.Algorithm,
		"tags": list(u.Tags), "limits": limitsObject(u.Limits),
	}
}

func listUsers(c *call) (any, error) {
	all := rows{}
	for _, u := range c.Users.Records().Users {
		all = append(all, userObject(&u))
	}
	return all, nil
}

// listUsersWithout lists the users that may not enter any virtual host.
func listUsersWithout(c *call) (any, error) {
	records := c.Users.Records()
	permitted := make(map[string]bool)
	for _, p := range records.Permissions {
		permitted[p.User] = true
	}
	all := rows{}
	for _, u := range records.Users {
		if !permitted[u.Name] {
			all = append(all, userObject(&u))
		}
	}
	return all, nil
}

func showUser(c *call) (any, error) {
	u, ok := c.Users.User(c.name("user"))
	if !ok {
		return nil, notFound()
	}
	return userObject(&u), nil
}

// putUser makes a user or replaces password and tags. Without a password nobody gets in by one.
func putUser(c *call) (any, error) {
	var body struct {
		Password  *string         `json:"password"`
		Hash      *string         `json:"password_hash"`
		Algorithm string          `json:"hashing_algorithm"`
		Tags      json.RawMessage `json:"tags"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	u := auth.User{Name: c.name("user"), Password: auth.HashPassword("")}
	var err error
	switch {
	case len(body.Tags) == 0:
		return nil, badRequest("tags_not_present")
	case body.Password != nil && body.Hash != nil:
		return nil, badRequest("both_password_and_password_hash_are_provided")
	case body.Password != nil:
		u.Password = auth.HashPassword(*body.Password)
	case body.Hash != nil:
		if u.Password, err = auth.ParsePasswordHash(body.Algorithm, *body.Hash); err != nil {
			return nil, badRequest("%v", err)
		}
	}
	if u.Tags, err = tags(body.Tags); err != nil {
		return nil, err
	}
	if err := u.Validate(); err != nil {
		return nil, badRequest("%v", err)
	}
	_, existed := c.Users.User(u.Name)
	return madeIf(!existed), c.Users.Put(auth.Records{Users: []auth.User{u}})
}

func deleteUser(c *call) (any, error) {
	existed, err := c.removeUser(c.name("user"))
	if err == nil && !existed {
		err = notFound()
	}
	return nil, err
}

// removeUser deletes a user and closes its connections.
func (c *call) removeUser(name string) (existed bool, err error) {
	existed, err = c.Users.DeleteUser(name)
	if existed && err == nil {
		c.Server.CloseUser(name, "user '"+name+"' is deleted")
	}
	return existed, err
}

func deleteUsers(c *call) (any, error) {
	var body struct {
		Users []string `json:"users"`
	}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	for _, name := range body.Users {
		if _, known := c.Users.User(name); !known {
			return nil, badRequest("no_such_user: %s", name)
		}
	}
	for _, name := range body.Users {
		if _, err := c.removeUser(name); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
