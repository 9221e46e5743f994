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

// parse reads the keys, the token and the options, which come in any order and case, each at most
// once. A TTL is required.
func (g grammar) parse(args [][]byte) (lockArgs, error) {
	parsed, options, err := g.keysAndToken(args)
	if err != nil {
		return lockArgs{}, err
	}
	blocks, takesSlots := false, g.takesLock && !g.several
	for len(options) > 0 {
		word := syntax.Lower(options[0])
		if word == "keepalive" && !parsed.keepalive {
			var err error
			if options, err = g.parseKeepalive(&parsed, options[1:]); err != nil {
				return lockArgs{}, err
			}
			continue
		}
		if word == "shared" && takesSlots && parsed.slots == 0 {
			parsed.slots = quorum.Unlimited
			options = options[1:]
			continue
		}
		if flag := g.flag(&parsed, word); flag != nil && !*flag {
			*flag = true
			options = options[1:]
			continue
		}
		isTTL := (word == "px" || word == "ex") && parsed.ttl == 0
		isWait := word == "block" && g.takesLock && !blocks
		isSlots := word == "slots" && takesSlots && parsed.slots == 0
		var err error
		switch {
		case word == "maxhold":
			err = errMaxHoldAlone
		case g.takesLock && g.several && (word == "shared" || word == "slots"):
			err = errExclusive
		case parsed.slots != 0 && (word == "shared" || word == "slots"):
			err = errSharedSlots
		case !isTTL && !isWait && !isSlots:
			err = fmt.Errorf("%s: unexpected '%s'", syntax.ErrSyntax, syntax.Excerpt(options[0]))
		case len(options) < 2:
			err = fmt.Errorf("%s: '%s' requires a value", syntax.ErrSyntax, syntax.Excerpt(options[0]))
		case isTTL:
			parsed.ttl, err = g.parseTTL(word, options[1])
		case isSlots:
			parsed.slots, err = parseSlots(options[1])
		default:
			blocks = true
			parsed.wait, err = parseWait(options[1])
		}
		if err != nil {
			return lockArgs{}, err
		}
		options = options[2:]
	}
	if parsed.ttl == 0 {
		return lockArgs{}, errNoTTL
	}
	if err := g.checkKeepalive(parsed); err != nil {
		return lockArgs{}, err
	}
	return parsed, nil
}

// parseKeepalive reads the words after KEEPALIVE, and returns the remaining options.
func (g grammar) parseKeepalive(parsed *lockArgs, options [][]byte) (rest [][]byte, err error) {
	parsed.keepalive = true
	if len(options) == 0 || syntax.Lower(options[0]) != "maxhold" {
		return options, nil
	}
	if len(options) < 2 {
		return nil, fmt.Errorf("%s: '%s' requires a value", syntax.ErrSyntax, syntax.Excerpt(options[0]))
	}
	n, ok := syntax.Int(options[1])
	switch {
	case !ok || n > math.MaxInt64/int64(time.Millisecond):
		return nil, errNotInteger
	case n <= 0:
		return nil, fmt.Errorf("ERR invalid MAXHOLD in '%s' command: it must be positive", g.name)
	}
	parsed.maxHold = time.Duration(n) * time.Millisecond
	return options[2:], nil
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

// flag returns the field of an option without a value, or nil.
func (g grammar) flag(args *lockArgs, word string) *bool {
	switch {
	case word == "at":
		return &args.at
	case word == "fence" && g.takesLock:
		return &args.fence
	default:
		return nil
	}
}

// keysAndToken reads the keys and the token, and returns the options after them.
func (g grammar) keysAndToken(args [][]byte) (parsed lockArgs, options [][]byte, err error) {
	rest, n := args[1:], 1
	if g.several {
		if n, err = countOfKeys(g.name, args); err != nil {
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

// parseTTL reads a TTL in milliseconds (px) or seconds (ex).
func (g grammar) parseTTL(unit string, value []byte) (time.Duration, error) {
	n, ok := syntax.Int(value)
	if !ok {
		return 0, errNotInteger
	}
	scale := time.Millisecond
	if unit == "ex" {
		scale = time.Second
	}
	switch {
	case n <= 0:
		return 0, errors.New(syntax.InvalidExpire(g.name))
	case n > int64(g.maxTTL/scale):
		return 0, errors.New(syntax.ExpireOverLimit(g.name, g.maxTTL))
	}
	return time.Duration(n) * scale, nil
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
