package amqp

import (
	"fmt"
	"unicode/utf8"
)

// Reply codes of connection.close, channel.close and basic.return. [amqp 1.2]
const (
	ReplySuccess       uint16 = 200
	ContentTooLarge    uint16 = 311
	NoRoute            uint16 = 312
	NoConsumers        uint16 = 313
	ConnectionForced   uint16 = 320
	InvalidPath        uint16 = 402
	AccessRefused      uint16 = 403
	NotFound           uint16 = 404
	ResourceLocked     uint16 = 405
	PreconditionFailed uint16 = 406
	FrameError         uint16 = 501
	SyntaxError        uint16 = 502
	CommandInvalid     uint16 = 503
	ChannelError       uint16 = 504
	UnexpectedFrame    uint16 = 505
	ResourceError      uint16 = 506
	NotAllowed         uint16 = 530
	NotImplemented     uint16 = 540
	InternalError      uint16 = 541
)

// Scope says what an error ends.
type Scope uint8

const (
	// ScopeConnection errors close the connection.
	ScopeConnection Scope = iota
	// ScopeChannel errors close the channel they arose on.
	ScopeChannel
)

// Error is a protocol error: what a close method tells the peer.
type Error struct {
	Code uint16
	// Text explains, without the code's name; ReplyText puts that in front.
	Text string
	// Class and Method name the method that failed; 0 if none did.
	Class, Method uint16
}

// Errorf returns an *Error with the given reply code and formatted text.
func Errorf(code uint16, format string, a ...any) error {
	return &Error{Code: code, Text: fmt.Sprintf(format, a...)}
}

// Error returns the code, its name and the text.
func (e *Error) Error() string {
	return fmt.Sprintf("%d %s - %s", e.Code, CodeName(e.Code), e.Text)
}

// ReplyText returns the reply-text of the close method: "NOT_FOUND - no queue
// 'q' in vhost '/'", cut to what a short string holds, which dots at the end tell.
func (e *Error) ReplyText() string {
	const dots = "..."
	text := CodeName(e.Code) + " - " + e.Text
	if len(text) <= MaxShortStr {
		return text
	}
	return cutTo(text, MaxShortStr-len(dots)) + dots
}

// Scope returns whether the error ends a channel or the connection, which
// follows from the code alone. [amqp 1.2]
func (e *Error) Scope() Scope {
	switch e.Code {
	case ContentTooLarge, NoRoute, NoConsumers, AccessRefused, NotFound,
		ResourceLocked, PreconditionFailed:
		return ScopeChannel
	}
	return ScopeConnection
}

// CodeName returns the name of a reply code as RabbitMQ writes it in reply
// texts, such as "PRECONDITION_FAILED".
func CodeName(code uint16) string {
	switch code {
	case ReplySuccess:
		return "OK"
	case ContentTooLarge:
		return "CONTENT_TOO_LARGE"
	case NoRoute:
		return "NO_ROUTE"
	case NoConsumers:
		return "NO_CONSUMERS"
	case ConnectionForced:
		return "CONNECTION_FORCED"
	case InvalidPath:
		return "INVALID_PATH"
	case AccessRefused:
		return "ACCESS_REFUSED"
	case NotFound:
		return "NOT_FOUND"
	case ResourceLocked:
		return "RESOURCE_LOCKED"
	case PreconditionFailed:
		return "PRECONDITION_FAILED"
	case FrameError:
		return "FRAME_ERROR"
	case SyntaxError:
		return "SYNTAX_ERROR"
	case CommandInvalid:
		return "COMMAND_INVALID"
	case ChannelError:
		return "CHANNEL_ERROR"
	case UnexpectedFrame:
		return "UNEXPECTED_FRAME"
	case ResourceError:
		return "RESOURCE_ERROR"
	case NotAllowed:
		return "NOT_ALLOWED"
	case NotImplemented:
		return "NOT_IMPLEMENTED"
	case InternalError:
		return "INTERNAL_ERROR"
	}
	return fmt.Sprintf("CODE_%d", code)
}

// cutShort shortens s to the 255 octets of a short string without splitting a
// UTF-8 sequence.
func cutShort[S ~string | ~[]byte](s S) S {
	if len(s) <= MaxShortStr {
		return s
	}
	return cutTo(s, MaxShortStr)
}

// cutTo returns the first n octets of a longer s, less a rune that they would cut.
func cutTo[S ~string | ~[]byte](s S, n int) S {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
