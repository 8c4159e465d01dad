package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/duepost/duepost/internal/amqp"
	"github.com/duepost/duepost/internal/auth"
	"github.com/duepost/duepost/internal/definitions"
	"github.com/duepost/duepost/internal/policy"
)

// apiError is what a client is told when a request is refused.
type apiError struct {
	code   int    // HTTP's
	stable string // for programs
	reason string // for people
}

// Error returns what the client is told.
func (e *apiError) Error() string { return e.stable + ": " + e.reason }

// MarshalJSON writes RabbitMQ's form of errors.
func (e *apiError) MarshalJSON() ([]byte, error) {
	return object{"error": e.stable, "reason": e.reason}.bytes()
}

func notFound() error {
	return &apiError{http.StatusNotFound, "Object Not Found", "Not Found"}
}

func vhostNotFound() error {
	return &apiError{http.StatusNotFound, "not_found", "vhost_not_found"}
}

func badRequest(format string, a ...any) error {
	return &apiError{http.StatusBadRequest, "bad_request", fmt.Sprintf(format, a...)}
}

func notAuthorised(reason string) error {
	return &apiError{http.StatusUnauthorized, "not_authorised", reason}
}

// translate makes an apiError of what those that were asked say, where a client may hear it.
func translate(err error) error {
	var (
		said   *amqp.Error
		fault  *policy.Fault
		faults definitions.Faults
		bad    *auth.PatternError
	)
	switch {
	case errors.As(err, new(*apiError)):
		return err
	case errors.As(err, &said):
		return translateAMQP(said)
	case errors.As(err, &faults):
		lines := make([]string, len(faults))
		for i := range faults {
			lines[i] = faults[i].Error()
		}
		return badRequest("%s", strings.Join(lines, "\n"))
	case errors.As(err, &fault):
		return badRequest("Validation failed\n\n%s\n", fault.Text)
	case errors.As(err, &bad):
		return badRequest("%v", bad)
	case errors.Is(err, auth.ErrUnknownUser):
		return badRequest("vhost_or_user_not_found")
	}
	return err
}

// translateAMQP says over HTTP what a client would hear over AMQP.
func translateAMQP(e *amqp.Error) error {
	switch e.Code {
	case amqp.AccessRefused, amqp.NotAllowed:
		return notAuthorised("Access refused.")
	case amqp.NotFound:
		return &apiError{http.StatusNotFound, "not_found", e.Text}
	case amqp.InternalError, amqp.ResourceError:
		return &apiError{http.StatusServiceUnavailable, "unavailable", e.Text}
	}
	return badRequest("%s", e.Text)
}
