// Package redisonce keeps the records of package once in Redis 6 or later, for work whose own
// store has no transactions to share. It is a module of its own, so that only its users get the
// client.
//
// What it promises is what package once says of leases: at least once, and twice only if a
// process or Redis was lost at the wrong moment. Redis forgets what it had not yet written to its disk or
// replica when it crashed, and evicts records if its maxmemory-policy lets it: use noeviction.
package redisonce

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/duepost/duepost/once"
)

// New returns a store over a client of Redis, also of a cluster. scope is what the keys are about,
// say the name of the queue; records are at duepost:once:scope:key. Stores of the same scope
// must have the same Keep.
func New(client redis.Scripter, scope string, o once.Options) (once.Store[once.Lease], error) {
	if client == nil || scope == "" {
		return nil, fmt.Errorf("make store: client and scope must be set: %w", once.ErrInvalid)
	}
	if o.Keep == 0 {
		o.Keep = once.DefaultKeep
	}
	l := &leases{client: client, prefix: "duepost:once:" + scope + ":", keep: o.Keep}
	return once.NewLeased(l, o)
}

// leases are hashes, one for each key, with the fields
//
//	done    1 when the work is done
//	holder  who had the last lease
//	fence   how many leases there were
//	until   when the last lease ends, in microseconds since 1970 by the clock of Redis
//
// A record is forgotten keep after its last change. All changes are scripts, of which Redis does
// one at a time.
type leases struct {
	client redis.Scripter
	prefix string
	keep   time.Duration
}

// now is how scripts read the clock.
const now = `local t = redis.call('TIME'); local now = t[1] * 1000000 + t[2]
`

// Each call makes its scripts anew: a variable of the package could be changed.
func claimScript() *redis.Script {
	return redis.NewScript(now + `
local r = redis.call('HMGET', KEYS[1], 'done', 'until')
if r[1] then return {'done', 0} end
if r[2] and tonumber(r[2]) > now then return {'busy', tonumber(r[2]) - now} end
local fence = redis.call('HINCRBY', KEYS[1], 'fence', 1)
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'until', string.format('%.0f', now + ARGV[2]))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {'granted', fence}`)
}

// held begins the scripts that only the holder may run.
const held = now + `
local r = redis.call('HMGET', KEYS[1], 'done', 'holder')
if r[1] or r[2] ~= ARGV[1] then return 0 end
`

func renewScript() *redis.Script {
	return redis.NewScript(held + `
redis.call('HSET', KEYS[1], 'until', string.format('%.0f', now + ARGV[2]))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`)
}

func finishScript() *redis.Script {
	return redis.NewScript(held + `
redis.call('HSET', KEYS[1], 'done', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`)
}

func releaseScript() *redis.Script {
	return redis.NewScript(held + `
redis.call('HSET', KEYS[1], 'until', 0)
return 1`)
}

// Claim is as once.Leases says.
func (l *leases) Claim(ctx context.Context, key string, lease time.Duration) (once.Claim, error) {
	holder := rand.Text()
	answer, err := claimScript().Run(ctx, l.client, []string{l.prefix + key},
		holder, lease.Microseconds(), max(l.keep, lease).Milliseconds()).Slice()
	if err != nil {
		return once.Claim{}, err
	}
	if len(answer) != 2 {
		return once.Claim{}, errors.New("read answer of Redis: not two values")
	}
	n, _ := answer[1].(int64)
	switch answer[0] {
	case "done":
		return once.Claim{Done: true}, nil
	case "busy":
		return once.Claim{Busy: max(time.Duration(n)*time.Microsecond, 1)}, nil
	}
	return once.Claim{Lease: once.Lease{Key: key, Fence: n, Holder: holder}}, nil
}

// Renew is as once.Leases says.
func (l *leases) Renew(ctx context.Context, lease once.Lease, d time.Duration) (bool, error) {
	return l.run(ctx, renewScript(), lease, d.Microseconds(), max(l.keep, d).Milliseconds())
}

// Finish is as once.Leases says.
func (l *leases) Finish(ctx context.Context, lease once.Lease, keep time.Duration) (bool, error) {
	return l.run(ctx, finishScript(), lease, keep.Milliseconds())
}

// Release is as once.Leases says.
func (l *leases) Release(ctx context.Context, lease once.Lease) error {
	_, err := l.run(ctx, releaseScript(), lease)
	return err
}

func (l *leases) run(ctx context.Context, s *redis.Script, lease once.Lease, args ...any) (bool, error) {
	n, err := s.Run(ctx, l.client, []string{l.prefix + lease.Key}, append([]any{lease.Holder}, args...)...).Int()
	return n == 1, err
}
