package locks

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/locks/keepalive"
	"redlock-proxy/quorum"
)

// Errors in Redis' wording, except errNoTTL, errMaxHoldAlone, errSharedSlots, errSlots and
// errExclusive. The text is the reply.
var (
	errNoTTL        = errors.New(syntax.ErrSyntax + ": PX or EX is missing")
	errMaxHoldAlone = errors.New(syntax.ErrSyntax + ": MAXHOLD must follow KEEPALIVE")
	errSharedSlots  = errors.New(syntax.ErrSyntax + ": only one SHARED or SLOTS is allowed")
	errSlots        = fmt.Errorf("ERR invalid SLOTS in 'lock' command: it must be between 1 and %d", MaxSlots)
	errExclusive    = errors.New(syntax.ErrSyntax + ": MLOCK takes exclusive locks only; use LOCK for SHARED and SLOTS")
	errNotInteger   = errors.New(syntax.ErrNotInteger)
	errNegative     = errors.New("ERR timeout is negative")
	errTimeout      = errors.New("ERR timeout is not an integer or out of range")
)

// randomTokenArg is the argument that asks the proxy to generate the token, like * in XADD.
const randomTokenArg = "*"

// lockArgs holds the arguments of LOCK, EXTEND, MLOCK or MEXTEND.
type lockArgs struct {
	keys      []string
	token     string
	ttl       time.Duration // 0 if none is given
	wait      time.Duration // as in quorum.LockRequest
	at        bool          // the reply includes the time from arrival to the start of the lease
	fence     bool          // the lock gets a fence
	slots     int           // as in quorum.LockRequest
	keepalive bool          // the proxy renews the lock
	maxHold   time.Duration // as in keepalive.Term
}

// grammar defines which options a command accepts, and the limit of its TTL.
type grammar struct {
	name      string // in lower case, for error texts
	several   bool   // the number of keys precedes the keys, and the locks are exclusive
	takesLock bool   // the command takes a lock, so it accepts BLOCK ms and FENCE, for one key also SHARED and SLOTS n
	maxTTL    time.Duration
}

// optionGroup is a set of options that exclude each other.
type optionGroup uint8

const (
	ttlOption optionGroup = 1 << iota
	waitOption
	atOption
	fenceOption
	holdersOption
	keepaliveOption
	maxHoldOption
)

// option is one row of the table of options.
type option struct {
	group      optionGroup
	takesValue bool
	takesLock  bool // only for commands that take a lock
	set        func(g grammar, parsed *lockArgs, value []byte) error
}

// optionsByWord holds the options of LOCK, EXTEND, MLOCK and MEXTEND, by word.
var optionsByWord = map[string]option{
	"px": {group: ttlOption, takesValue: true, set: func(g grammar, parsed *lockArgs, value []byte) (err error) {
		parsed.ttl, err = g.parseTTL(time.Millisecond, value)
		return err
	}},
	"ex": {group: ttlOption, takesValue: true, set: func(g grammar, parsed *lockArgs, value []byte) (err error) {
		parsed.ttl, err = g.parseTTL(time.Second, value)
		return err
	}},
	"block": {group: waitOption, takesValue: true, takesLock: true, set: func(_ grammar, parsed *lockArgs, value []byte) (err error) {
		parsed.wait, err = parseWait(value)
		return err
	}},
	"at": {group: atOption, set: func(_ grammar, parsed *lockArgs, _ []byte) error {
		parsed.at = true
		return nil
	}},
	"fence": {group: fenceOption, takesLock: true, set: func(_ grammar, parsed *lockArgs, _ []byte) error {
		parsed.fence = true
		return nil
	}},
	"shared": {group: holdersOption, takesLock: true, set: func(_ grammar, parsed *lockArgs, _ []byte) error {
		parsed.slots = quorum.Unlimited
		return nil
	}},
	"slots": {group: holdersOption, takesValue: true, takesLock: true, set: func(_ grammar, parsed *lockArgs, value []byte) (err error) {
		parsed.slots, err = parseSlots(value)
		return err
	}},
	"keepalive": {group: keepaliveOption, set: func(_ grammar, parsed *lockArgs, _ []byte) error {
		parsed.keepalive = true
		return nil
	}},
	"maxhold": {group: maxHoldOption, takesValue: true, set: func(g grammar, parsed *lockArgs, value []byte) (err error) {
		parsed.maxHold, err = g.parseMaxHold(value)
		return err
	}},
}

// parse reads the keys, the token and the options. Options come in any order and case, each at most
// once, but MAXHOLD must directly follow KEEPALIVE. A TTL is required.
func (g grammar) parse(args [][]byte) (lockArgs, error) {
	parsed, words, err := g.keysAndToken(args)
	if err != nil {
		return lockArgs{}, err
	}
	var given, last optionGroup
	for len(words) > 0 {
		o, known := optionsByWord[syntax.Lower(words[0])]
		if err := g.refusal(o, given, last); err != nil {
			return lockArgs{}, err
		}
		var value []byte
		size := 1
		switch {
		case !known, o.takesLock && !g.takesLock, given&o.group != 0:
			return lockArgs{}, fmt.Errorf("%s: unexpected '%s'", syntax.ErrSyntax, syntax.Excerpt(words[0]))
		case o.takesValue && len(words) < 2:
			return lockArgs{}, fmt.Errorf("%s: '%s' requires a value", syntax.ErrSyntax, syntax.Excerpt(words[0]))
		case o.takesValue:
			value, size = words[1], 2
		}
		if err := o.set(g, &parsed, value); err != nil {
			return lockArgs{}, err
		}
		given, last, words = given|o.group, o.group, words[size:]
	}
	if parsed.ttl == 0 {
		return lockArgs{}, errNoTTL
	}
	if err := g.checkKeepalive(parsed); err != nil {
		return lockArgs{}, err
	}
	return parsed, nil
}

// refusal returns the error for an option that the command does not accept after the given options,
// if the option has an error of its own, or nil.
func (g grammar) refusal(o option, given, last optionGroup) error {
	switch {
	case o.group == maxHoldOption && last != keepaliveOption:
		return errMaxHoldAlone
	case o.group == holdersOption && g.takesLock && g.several:
		return errExclusive
	case o.group == holdersOption && given&holdersOption != 0:
		return errSharedSlots
	}
	return nil
}

// parseMaxHold reads the milliseconds of MAXHOLD.
func (g grammar) parseMaxHold(value []byte) (time.Duration, error) {
	n, ok := syntax.Int(value)
	switch {
	case !ok || n > math.MaxInt64/int64(time.Millisecond):
		return 0, errNotInteger
	case n <= 0:
		return 0, fmt.Errorf("ERR invalid MAXHOLD in '%s' command: it must be positive", g.name)
	}
	return time.Duration(n) * time.Millisecond, nil
}

// checkKeepalive rejects times that a kept lock cannot have.
func (g grammar) checkKeepalive(parsed lockArgs) error {
	switch {
	case parsed.keepalive && parsed.ttl < keepalive.MinTTL:
		return fmt.Errorf("%s: with KEEPALIVE the TTL must be at least %d ms",
			syntax.InvalidExpire(g.name), keepalive.MinTTL.Milliseconds())
	case parsed.maxHold != 0 && parsed.maxHold < parsed.ttl:
		return fmt.Errorf("ERR invalid MAXHOLD in '%s' command: it must not be shorter than the TTL", g.name)
	}
	return nil
}

// keysAndToken reads the keys and the token, and returns the options after them.
func (g grammar) keysAndToken(args [][]byte) (parsed lockArgs, options [][]byte, err error) {
	rest, n := args[1:], 1
	if g.several {
		if n, err = parseKeyCount(g.name, args); err != nil {
			return lockArgs{}, nil, err
		}
		rest = args[2:]
	}
	parsed = lockArgs{keys: syntax.Strings(rest[:n]), token: string(rest[n])}
	for i, key := range parsed.keys {
		switch {
		case key == "":
			return lockArgs{}, nil, fmt.Errorf("ERR empty key in '%s' command", g.name)
		case slices.Contains(parsed.keys[:i], key):
			return lockArgs{}, nil, fmt.Errorf("ERR key '%s' appears twice in '%s' command: name each key once",
				syntax.Excerpt(key), g.name)
		}
	}
	// With an empty word, which probably comes from a variable that was not set, all clients would
	// share one lock, or one token.
	if parsed.token == "" {
		return lockArgs{}, nil, fmt.Errorf("ERR empty token in '%s' command", g.name)
	}
	return parsed, rest[n+1:], nil
}

// parseTTL reads a TTL in a unit.
func (g grammar) parseTTL(unit time.Duration, value []byte) (time.Duration, error) {
	n, ok := syntax.Int(value)
	switch {
	case !ok:
		return 0, errNotInteger
	case n <= 0:
		return 0, errors.New(syntax.InvalidExpire(g.name))
	case n > int64(g.maxTTL/unit):
		return 0, errors.New(syntax.ExpireOverLimit(g.name, g.maxTTL))
	}
	return time.Duration(n) * unit, nil
}

// MaxSlots is the highest SLOTS. All holders of a lock are stored in one value, which each LOCK and
// UNLOCK writes.
const MaxSlots = 10000

// parseSlots reads the number of SLOTS.
func parseSlots(value []byte) (int, error) {
	n, ok := syntax.Int(value)
	switch {
	case !ok:
		return 0, errNotInteger
	case n < 1 || n > MaxSlots:
		return 0, errSlots
	}
	return int(n), nil
}

// parseWait reads BLOCK's milliseconds. As in XREAD, 0 means no limit.
func parseWait(value []byte) (time.Duration, error) {
	n, ok := syntax.Int(value)
	switch {
	case !ok || n > math.MaxInt64/int64(time.Millisecond):
		return 0, errTimeout
	case n < 0:
		return 0, errNegative
	case n == 0:
		return quorum.NoWaitLimit, nil
	}
	return time.Duration(n) * time.Millisecond, nil
}
