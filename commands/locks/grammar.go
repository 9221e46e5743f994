package locks

import (
	"errors"
	"fmt"
	"math"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/quorum"
)

// Errors in the wording of Redis; the text is the reply.
var (
	errSyntax     = errors.New(syntax.ErrSyntax)
	errNotInteger = errors.New(syntax.ErrNotInteger)
	errNegative   = errors.New("ERR timeout is negative")
	errTimeout    = errors.New("ERR timeout is not an integer or out of range")
)

// generate is the token that asks the proxy to make one, as * does in XADD.
const generate = "*"

// lockArgs are the arguments of LOCK, UNLOCK or EXTEND.
type lockArgs struct {
	key, token string
	ttl        time.Duration // 0: none given
	wait       time.Duration // as in quorum.LockRequest
	at         bool          // the reply is to tell when the lease began
	fence      bool          // the lock is to get a fence
}

// grammar says which options a command takes, and its TTL's limit.
type grammar struct {
	name   string // in lower case, for error texts
	takes  bool   // it takes a lock: BLOCK ms and FENCE belong to it
	maxTTL time.Duration
}

// parse reads key, token and the options after them, which come in any order
// and case, each at most once. A TTL must be given.
func (g grammar) parse(args [][]byte) (lockArgs, error) {
	if err := named(g.name, args); err != nil {
		return lockArgs{}, err
	}
	parsed := lockArgs{key: string(args[1]), token: string(args[2])}
	options := args[3:]
	blocks := false
	for len(options) > 0 {
		word := syntax.Lower(options[0])
		if flag := g.flag(&parsed, word); flag != nil && !*flag {
			*flag = true
			options = options[1:]
			continue
		}
		if len(options) < 2 {
			return lockArgs{}, errSyntax
		}
		value := options[1]
		options = options[2:]
		var err error
		switch {
		case (word == "px" || word == "ex") && parsed.ttl == 0:
			parsed.ttl, err = g.ttl(word, value)
		case word == "block" && g.takes && !blocks:
			blocks = true
			parsed.wait, err = parseWait(value)
		default:
			err = errSyntax
		}
		if err != nil {
			return lockArgs{}, err
		}
	}
	if parsed.ttl == 0 {
		return lockArgs{}, errSyntax
	}
	return parsed, nil
}

// flag is the option that is a word alone, or nil.
func (g grammar) flag(of *lockArgs, word string) *bool {
	switch {
	case word == "at":
		return &of.at
	case word == "fence" && g.takes:
		return &of.fence
	default:
		return nil
	}
}

// named refuses an empty key or token, which is a variable that was not set: with it, all
// clients would have one lock, or one owner.
func named(command string, args [][]byte) error {
	switch {
	case len(args[1]) == 0:
		return fmt.Errorf("ERR empty key in '%s' command", command)
	case len(args[2]) == 0:
		return fmt.Errorf("ERR empty token in '%s' command", command)
	}
	return nil
}

// ttl reads a TTL in milliseconds (px) or seconds (ex).
func (g grammar) ttl(unit string, value []byte) (time.Duration, error) {
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

// parseWait reads BLOCK's milliseconds; as in XREAD, 0 is without end.
func parseWait(value []byte) (time.Duration, error) {
	n, ok := syntax.Int(value)
	switch {
	case !ok || n > math.MaxInt64/int64(time.Millisecond):
		return 0, errTimeout
	case n < 0:
		return 0, errNegative
	case n == 0:
		return quorum.Forever, nil
	}
	return time.Duration(n) * time.Millisecond, nil
}
