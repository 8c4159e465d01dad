package headers

import "github.com/duepost/duepost/internal/amqp"

// MaxDelay is the longest delay in milliseconds: 100 years of 365 days.
const MaxDelay int64 = 100 * 365 * 24 * 60 * 60 * 1000

// MaxPluginDelay is the longest XDelay of RabbitMQ's plugin in milliseconds: what
// asks for more is not delayed there at all.
const MaxPluginDelay int64 = 1<<32 - 1

// Delay is what the headers of a message ask for. The zero value is a message
// that is not delayed.
type Delay struct {
	// Due is the instant of release in milliseconds since 1970; 0 if the
	// message is not delayed.
	Due int64
	// Millis is the delay that resulted, 1 to MaxDelay; 0 if not delayed.
	Millis int64

	// Key is the publisher's own name for the message while it waits: whatever waits
	// in the exchange under the same key gives way to it. It is a view of the headers,
	// nil if there is none. A message with a key and no delay is due at once.
	Key []byte
	// Cancel says that nothing is to take the place of what waits under Key.
	Cancel bool

	byXDelay bool // it is XDelay that decides

	// What a released message shows in XDelay and DeliveryDelay; 0 leaves the
	// header as it is.
	shownXDelay, shownDeliveryDelay int64
}

// IsDelayed reports whether the message has to wait.
func (d Delay) IsDelayed() bool { return d.Due != 0 }

// Waits reports whether it is for the delayed exchange to deal with the message.
func (d Delay) Waits() bool { return d.IsDelayed() || d.Key != nil }

// IsBeyondPlugin reports whether RabbitMQ's plugin would not delay the message, because
// its XDelay is too long for it.
func (d Delay) IsBeyondPlugin() bool { return d.byXDelay && d.Millis > MaxPluginDelay }

// WithoutKey returns the delay of a message that is not from its publisher.
func (d Delay) WithoutKey() Delay {
	d.Key, d.Cancel = nil, false
	return d
}

// setting is one delay header of a message.
type setting struct {
	millis  int64
	present bool
}

// settings are the delay headers of a message.
type settings struct {
	time, delay, xDelay setting
	key                 []byte
	cancel              setting // 1 for true
}

func (s *settings) isEmpty() bool {
	return !s.time.present && !s.delay.present && !s.xDelay.present && s.key == nil && !s.cancel.present
}

// ParseDelay reads the delay headers. The first present of DeliveryTime,
// DeliveryDelay and XDelay decides; zero, negative or past means not delayed.
// If DeliveryDelay or XDelay is negative, the message was delayed before and is
// not delayed again, whatever the others say.
//
// DelayKey and DelayCancel say what of before is to give way; see Delay.Key.
//
// Every delay header must be sound, also one that does not decide. If not, the
// error is an *amqp.Error with code PreconditionFailed that names the header,
// what it has and what is allowed.
//
// acceptedMillis is the instant of acceptance, rounded up, so that Due is never
// early. h was validated.
func ParseDelay(h amqp.RawTable, acceptedMillis int64) (Delay, error) {
	s, err := readSettings(h)
	if err != nil || s.isEmpty() {
		return Delay{}, err
	}
	if s.cancel.millis != 0 && s.key == nil {
		return Delay{}, amqp.Errorf(amqp.PreconditionFailed,
			"header '%s' is true and there is no header '%s'", DelayCancel, DelayKey)
	}
	if s.delay.millis < 0 || s.xDelay.millis < 0 {
		return Delay{}, nil
	}
	millis := s.decide(acceptedMillis)
	if millis <= 0 || s.cancel.millis != 0 {
		return Delay{Key: s.key, Cancel: s.cancel.millis != 0}, nil
	}
	if millis > MaxDelay {
		return Delay{}, tooLong(DeliveryTime, millis)
	}
	d := Delay{
		Due:                acceptedMillis + millis,
		Millis:             millis,
		Key:                s.key,
		byXDelay:           !s.time.present && !s.delay.present,
		shownXDelay:        -s.xDelay.millis,
		shownDeliveryDelay: -s.delay.millis,
	}
	if s.time.present {
		d.shownXDelay = -millis
	}
	return d, nil
}

// readSettings finds and checks the delay headers in one pass. Of several with
// one name the first counts.
func readSettings(h amqp.RawTable) (settings, error) {
	var s settings
	for key, v := range h.All() {
		if len(key) == 0 || key[0] != 'x' {
			continue
		}
		var target *setting
		switch string(key) {
		case XDelay:
			target = &s.xDelay
		case DeliveryDelay:
			target = &s.delay
		case DeliveryTime:
			target = &s.time
		case DelayKey:
			if err := s.readKey(v); err != nil {
				return settings{}, err
			}
			continue
		case DelayCancel:
			if err := s.readCancel(v); err != nil {
				return settings{}, err
			}
			continue
		default:
			continue
		}
		if target.present {
			continue
		}
		millis, ok := number(v)
		if !ok {
			return settings{}, notANumber(string(key), v)
		}
		if target != &s.time && millis > MaxDelay {
			return settings{}, tooLong(string(key), millis)
		}
		*target = setting{millis, true}
	}
	return s, nil
}

// MaxKey is the longest DelayKey in bytes.
const MaxKey = 255

// readKey reads DelayKey.
func (s *settings) readKey(v amqp.RawValue) error {
	key, ok := v.Str()
	if !ok {
		return amqp.Errorf(amqp.PreconditionFailed,
			"header '%s' has type %s; allowed is longstr", DelayKey, amqp.TypeName(v.Type))
	}
	if len(key) == 0 || len(key) > MaxKey {
		return amqp.Errorf(amqp.PreconditionFailed,
			"header '%s' has %d bytes, allowed are 1 to %d", DelayKey, len(key), MaxKey)
	}
	if s.key == nil {
		s.key = key
	}
	return nil
}

// readCancel reads DelayCancel.
func (s *settings) readCancel(v amqp.RawValue) error {
	cancel, ok := v.Bool()
	if !ok {
		return amqp.Errorf(amqp.PreconditionFailed,
			"header '%s' has type %s; allowed is bool", DelayCancel, amqp.TypeName(v.Type))
	}
	if cancel && !s.cancel.present {
		s.cancel.millis = 1
	}
	s.cancel.present = true
	return nil
}

// KeyOf returns the DelayKey of a message that was accepted, nil if it has none.
func KeyOf(h amqp.RawTable) []byte {
	v, ok := h.Lookup(DelayKey)
	if !ok {
		return nil
	}
	key, _ := v.Str()
	return key
}

// decide returns the delay from acceptance that the deciding header asks for.
func (s *settings) decide(acceptedMillis int64) int64 {
	switch {
	case s.time.present && s.time.millis <= acceptedMillis:
		return 0 // also keeps the difference from overflowing
	case s.time.present:
		return s.time.millis - acceptedMillis
	case s.delay.present:
		return s.delay.millis
	}
	return s.xDelay.millis
}

func tooLong(name string, millis int64) error {
	return amqp.Errorf(amqp.PreconditionFailed,
		"header '%s' asks for a delay of %d ms, allowed are at most %d ms (100 years)",
		name, millis, MaxDelay)
}

func notANumber(name string, v amqp.RawValue) error {
	const allowed = "allowed are an integer, a float, or a string holding an integer"
	if s, ok := v.Str(); ok {
		return amqp.Errorf(amqp.PreconditionFailed,
			"header '%s' has type longstr and no integer in it: %.40q; %s", name, s, allowed)
	}
	if f, ok := v.Float(); ok {
		return amqp.Errorf(amqp.PreconditionFailed,
			"header '%s' has type %s and value %v; %s", name, amqp.TypeName(v.Type), f, allowed)
	}
	return amqp.Errorf(amqp.PreconditionFailed,
		"header '%s' has type %s; %s", name, amqp.TypeName(v.Type), allowed)
}
