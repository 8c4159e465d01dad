package daemon

import (
	"fmt"

	"github.com/duepost/duepost/internal/auth"
	"github.com/duepost/duepost/internal/broker"
	"github.com/duepost/duepost/internal/config"
)

// loopbackUser is let in from this machine only: its password is known to everybody.
const loopbackUser = "guest"

// firstVHost is where the first user may do everything.
const firstVHost = "/"

// makeFirstUser makes the administrator that the settings name, if there never was a user and a
// definitions file brought none. Later the settings have no effect. [rmq access-control]
func makeFirstUser(c config.Config, users *auth.Users) error {
	if len(users.Records().Users) > 0 {
		return nil
	}
	err := users.Put(auth.Records{
		Users: []auth.User{{
			Name: c.DefaultUser, Password: auth.HashPassword(string(c.DefaultPass)), Tags: []string{auth.Administrator},
		}},
		Permissions: []auth.Permission{{
			User: c.DefaultUser, VHost: firstVHost, Configure: ".*", Write: ".*", Read: ".*",
		}},
	})
	if err != nil {
		return fmt.Errorf("make first user: %w", err)
	}
	return nil
}

// rights returns what a user may do in a virtual host.
func (d *Daemon) rights(user, vhost string) broker.Rights { return d.users.Rights(user, vhost) }
