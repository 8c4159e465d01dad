package daemon

import (
	"github.com/duepost/duepost/internal/auth"
	"github.com/duepost/duepost/internal/config"
	"github.com/duepost/duepost/internal/server"
)

// loopbackUser is let in from this machine only: its password is known to everybody.
const loopbackUser = "guest"

// authenticator lets the server ask the users.
type authenticator struct{ users *auth.Users }

func newAuthenticator(c config.Config) authenticator {
	users := auth.NewUsers(loopbackUser)
	users.Put(c.DefaultUser, auth.HashPassword(string(c.DefaultPass)))
	return authenticator{users}
}

// Authenticate implements server.Authenticator. A certificate proves the name by itself.
func (a authenticator) Authenticate(c server.Credentials) (string, error) {
	if c.Mechanism == "EXTERNAL" {
		return c.User, a.users.CheckName(c.User, c.Remote)
	}
	return c.User, a.users.CheckPassword(c.User, c.Password, c.Remote)
}
