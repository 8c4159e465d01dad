package daemon

import (
	"github.com/duepost/duepost/internal/auth"
	"github.com/duepost/duepost/internal/config"
)

// loopbackUser is let in from this machine only: its password is known to everybody.
const loopbackUser = "guest"

// newUsers returns who may connect. It is what the server asks: a password, or a name that a
// certificate has proved.
func newUsers(c config.Config) *auth.Users {
	users := auth.NewUsers(loopbackUser)
	users.Put(c.DefaultUser, auth.HashPassword(string(c.DefaultPass)))
	return users
}
