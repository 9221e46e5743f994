package cell

import (
	"fmt"
	"strconv"
	"time"

	"redlock-proxy/internal/luascript"
)

// Op is one operation on cells of one master. The operations are Take, Remove, Extend,
// Prepare, Accept, Raise and Read.
type Op interface {
	// Keys are the names of the keys, at least one.
	Keys() []string
	// Words is the command that does it. With whole set, a script is sent as such
	// instead of by its SHA.
	Words(whole bool) []any
	// Decode reads the master's answer, which is no error.
	Decode(answer any) (Answer, error)
	// Apply does it on a Store as the master would.
	Apply(s *Store) Answer
	// Writes reports whether it can change anything.
	Writes() bool
}

// Answer is a master's answer to an operation.
type Answer struct {
	// Did is whether it was done: taken, removed, extended, promised, accepted, read.
	Did bool
	// Found is what each of the keys held before. It may be missing where Did is
	// set and the operation needs no more.
	Found []Found
	// Fences are the fence counters of the keys, 0 for none: returned by a Take with a fence that
	// was refused, a Raise that was, and a Read that asks for them.
	Fences []int64
	// Now is the master's clock at that moment, since 1970; only Prepare returns it.
	Now time.Duration
}

// Found is what a key holds.
type Found struct {
	Cell
	// Left is the remaining time, in whole milliseconds, Endless, or NotReported: a Take of one key
	// without a fence does not return what refused it.
	Left time.Duration
}

// Appender is an Op that appends its command, the very one that Words has, without allocating.
type Appender interface {
	AppendTo(b []byte, whole bool) []byte
}

// Scripts are all that the operations use, to be loaded beforehand.
func Scripts() []luascript.Script {
	return []luascript.Script{
		takeScript, takeFencedScript, removeScript, releasesScript, extendScript, prepareScript, acceptScript, raiseScript, readScript, headsScript, readFencesScript,
	}
}

// layoutLua names the places in a cell, counted from 1.
var layoutLua = fmt.Sprintf(`local function mark(v) return string.sub(v, 1, %d) end
local function attempt(v) return string.sub(v, %d, %d) end
local function promised(v) return string.sub(v, %d, %d) end
local function accepted(v) return string.sub(v, %d, %d) end
local none = '%s'
local function token(v)
  if mark(v) == '%s' then return string.sub(v, %d) end
  if mark(v) ~= '%s' or string.sub(v, %d, %d) ~= 'v' then return nil end
  return string.sub(v, %d + %d * tonumber(string.sub(v, %d, %d)))
end
local function get(key)
  local v = redis.pcall('get', key)
  if type(v) == 'table' then return '%s' end
  return v
end
`, markSize, markSize+1, plainHead, plainHead+1, plainHead+idDigits, plainHead+idDigits+1, registerHead, noBallot,
	plainMark, plainHead+1,
	registerMark, registerHead+1, registerHead+1,
	registerHead+4, changeSize, registerHead+2, registerHead+3, wrongType)

// wrongType stands for what is under a key that is no string.
const wrongType = "#not a string"

// millis is a duration in whole milliseconds.
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// decode takes 1 (done, and nothing else), or {1 or 0, value or nil, PTTL, …} for so
// many keys, with seconds and microseconds behind that if timed.
func decode(answer any, keys int, timed bool) (Answer, error) {
	if answer == int64(1) {
		return Answer{Did: true}, nil
	}
	parts, _ := answer.([]any)
	want := 1 + 2*keys
	if timed {
		want += 2
	}
	if len(parts) != want {
		return Answer{}, unexpected(answer)
	}
	a := Answer{Did: parts[0] == int64(1), Found: make([]Found, keys)}
	for i := range a.Found {
		text, present := parts[1+2*i].(string)
		if !present && parts[1+2*i] != nil {
			return Answer{}, fmt.Errorf("unexpected value %.80v", parts[1+2*i])
		}
		left, ok := parts[2+2*i].(int64)
		if !ok {
			return Answer{}, fmt.Errorf("unexpected remaining time %.80v", parts[2+2*i])
		}
		a.Found[i] = found(text, present, left)
	}
	if timed {
		now, err := clockOf(parts[want-2], parts[want-1])
		if err != nil {
			return Answer{}, err
		}
		a.Now = now
	}
	return a, nil
}

// found is a key's value and PTTL.
func found(text string, present bool, left int64) Found {
	if !present || left == -2 {
		return Found{}
	}
	f := Found{Cell: Parse(text), Left: Endless}
	if left >= 0 {
		f.Left = time.Duration(left) * time.Millisecond
	}
	return f
}

// clockOf reads the two words of TIME.
func clockOf(seconds, micros any) (time.Duration, error) {
	s, _ := seconds.(string)
	us, _ := micros.(string)
	whole, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("unexpected time: %w", err)
	}
	part, err := strconv.ParseInt(us, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("unexpected time: %w", err)
	}
	return time.Duration(whole)*time.Second + time.Duration(part)*time.Microsecond, nil
}

func unexpected(answer any) error { return fmt.Errorf("unexpected answer %.80v", answer) }
