package server

import (
	"log/slog"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/wire"
)

// handleConnection handles the methods of an open connection.
func (c *conn) handleConnection(id wire.MethodID, args []byte) error {
	switch id {
	case wire.ConnectionCloseID:
		return c.closedByClient()
	case wire.ConnectionUpdateSecretID:
		return c.handleUpdateSecret(args)
	}
	if _, err := wire.New(id); err != nil {
		return err
	}
	return inMethod(amqp.Errorf(amqp.ChannelError,
		"unexpected method in connection state running"), id)
}

// closedByClient ends the connection as the client asked: all it held is given
// back before close-ok tells it so. [amqp connection.close]
func (c *conn) closedByClient() error {
	c.release()
	c.phase.Store(int32(phaseClosing))
	c.out.endSealed(wire.AppendMethod(c.out.begin(), 0, &wire.ConnectionCloseOk{}))
	return errAnswered
}

// handleUpdateSecret takes a new password or token for the user the connection
// belongs to. [rmq connection.update-secret]
func (c *conn) handleUpdateSecret(args []byte) error {
	var m wire.ConnectionUpdateSecret
	if err := m.Decode(args); err != nil {
		return err
	}
	cred := credentials{user: c.peer.user, password: m.NewSecret}
	if err := cred.check(c.server.cfg.Authenticator, c.nc.RemoteAddr()); err != nil {
		c.note(eventAuthRefused, slog.LevelWarn, "new secret refused",
			slog.String("user", c.peer.user), slog.Any("err", err))
		return inMethod(amqp.Errorf(amqp.NotAllowed,
			"New secret was refused by one of the backends"), m.ID())
	}
	c.send(0, &wire.ConnectionUpdateSecretOk{})
	return nil
}
