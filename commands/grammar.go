package commands

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"redlock-proxy/quorum"
)

// Errors in the wording of Redis; the text is the reply.
var (
	errSyntax     = errors.New("ERR syntax error")
	errNotInteger = errors.New("ERR value is not an integer or out of range")
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
}

// grammar says which options a command takes, and its TTL's limit.
type grammar struct {
	name   string // in lower case, for error texts
	block  bool   // it takes BLOCK ms
	maxTTL time.Duration
}

// parse reads key, token and the options behind them, which come in any order
// and case, each at most once. A TTL must be given.
func (g grammar) parse(args [][]byte) (lockArgs, error) {
	parsed := lockArgs{key: string(args[1]), token: string(args[2])}
	options := args[3:]
	blocks := false
	for len(options) > 0 {
		if len(options) < 2 {
			return lockArgs{}, errSyntax
		}
		word, value := lower(options[0]), options[1]
		options = options[2:]
		var err error
		switch {
		case (word == "px" || word == "ex") && parsed.ttl == 0:
			parsed.ttl, err = g.ttl(word, value)
		case word == "block" && g.block && !blocks:
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

// ttl reads a TTL in milliseconds (px) or seconds (ex).
func (g grammar) ttl(unit string, value []byte) (time.Duration, error) {
	n, err := parseInt(value)
	if err != nil {
		return 0, errNotInteger
	}
	scale := time.Millisecond
	if unit == "ex" {
		scale = time.Second
	}
	switch {
	case n <= 0:
		return 0, fmt.Errorf("ERR invalid expire time in '%s' command", g.name)
	case n > int64(g.maxTTL/scale):
		return 0, ttlOverLimit(g.name, g.maxTTL)
	}
	return time.Duration(n) * scale, nil
}

// ttlOverLimit is the error for a TTL that a command may not ask for.
func ttlOverLimit(command string, limit time.Duration) error {
	return fmt.Errorf("ERR invalid expire time in '%s' command: over max-ttl, %d ms", command, limit.Milliseconds())
}

// parseWait reads BLOCK's milliseconds; as in XREAD, 0 is without end.
func parseWait(value []byte) (time.Duration, error) {
	n, err := parseInt(value)
	switch {
	case err != nil || n > math.MaxInt64/int64(time.Millisecond):
		return 0, errTimeout
	case n < 0:
		return 0, errNegative
	case n == 0:
		return quorum.Forever, nil
	}
	return time.Duration(n) * time.Millisecond, nil
}

// parseInt takes what Redis takes: no plus sign, no leading zeros, no -0.
func parseInt(s []byte) (int64, error) {
	n, err := strconv.ParseInt(string(s), 10, 64)
	if err == nil && strconv.FormatInt(n, 10) != string(s) {
		err = errNotInteger
	}
	return n, err
}
