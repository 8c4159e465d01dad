package headers

import "github.com/duepost/duepost/internal/amqp"

// MaxDelay is the longest delay in milliseconds: 100 years of 365 days.
const MaxDelay int64 = 100 * 365 * 24 * 60 * 60 * 1000

// Delay is what the headers of a message ask for. The zero value is a message
// that is not delayed.
type Delay struct {
	// Due is the instant of release in milliseconds since 1970; 0 if the
	// message is not delayed.
	Due int64
	// Millis is the delay that resulted, 1 to MaxDelay; 0 if not delayed.
	Millis int64

	// What a released message shows in XDelay and DeliveryDelay; 0 leaves the
	// header as it is.
	shownXDelay, shownDeliveryDelay int64
}

// IsDelayed reports whether the message has to wait.
func (d Delay) IsDelayed() bool { return d.Due != 0 }

// setting is one delay header of a message.
type setting struct {
	millis  int64
	present bool
}

// settings are the delay headers of a message.
type settings struct {
	time, delay, xDelay setting
}

// ParseDelay reads the delay headers. The first present of DeliveryTime,
// DeliveryDelay and XDelay decides; zero, negative or past means not delayed.
// If DeliveryDelay or XDelay is negative, the message was delayed before and is
// not delayed again, whatever the others say.
//
// Every delay header must be sound, also one that does not decide. If not, the
// error is an *amqp.Error with code PreconditionFailed that names the header,
// what it has and what is allowed.
//
// acceptedMillis is the instant of acceptance, rounded up, so that Due is never
// early. h was validated.
func ParseDelay(h amqp.RawTable, acceptedMillis int64) (Delay, error) {
	s, err := readSettings(h)
	if err != nil || s == (settings{}) {
		return Delay{}, err
	}
	if s.delay.millis < 0 || s.xDelay.millis < 0 {
		return Delay{}, nil
	}
	millis := s.decide(acceptedMillis)
	if millis <= 0 {
		return Delay{}, nil
	}
	if millis > MaxDelay {
		return Delay{}, tooLong(DeliveryTime, millis)
	}
	d := Delay{
		Due:                acceptedMillis + millis,
		Millis:             millis,
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
