package cell

import (
	"fmt"
	"strconv"
	"time"

	"redlock-proxy/internal/luascript"
)

// Op is one operation on a master: Take, Remove, Extend, Extends, Prepare, Accept, Raise, Read, or
// an operation on marks of waiters.
type Op interface {
	// Keys returns the names of the keys, at least one.
	Keys() []string
	// Words returns the command. If withSource is set, the command contains the script instead of
	// its SHA-1.
	Words(withSource bool) []any
	// Decode decodes a reply of the master that is not an error.
	Decode(answer any) (Answer, error)
	// Apply carries out the operation on a Store, like a master.
	Apply(s *Store) Answer
	// Writes reports whether the operation can change anything.
	Writes() bool
}

// Answer is a master's decoded reply.
type Answer struct {
	// Applied is set if the master did the operation on all keys.
	Applied bool
	// AppliedKeys reports for each key of an Extends whether the master extended it.
	AppliedKeys []bool
	// KeyStates holds the previous state of each key. It may be missing if Applied is set. A
	// SignalWaiter returns the new state of the mark that it replaced instead.
	KeyStates []KeyState
	// Fences holds the fence counters of the keys; 0 means none. A refused Raise, a refused Take
	// with a fence, and a Read with WithFences return them.
	Fences []int64
	// Now is the master's clock, since 1970. Only Prepare and Accept return it.
	Now time.Duration
}

// KeyState is the state of a key on a master.
type KeyState struct {
	Cell
	// TimeLeft is the remaining time in whole milliseconds, or NoExpiry. It is NotReported after a
	// refused SET NX.
	TimeLeft time.Duration
}

// Appender is an Op that appends the command of Words without allocating.
type Appender interface {
	AppendTo(b []byte, withSource bool) []byte
}

// Scripts returns the scripts for lock keys, so that a proxy can load them beforehand.
func Scripts() []luascript.Script {
	return []luascript.Script{
		takeScript, takeFencedScript, removeScript, releasesScript, extendScript, extendsScript,
		prepareScript, acceptScript, raiseScript, readScript, headsScript, readFencesScript, signalWaiterScript,
	}
}

// layoutLua defines functions that read the parts of a cell. Lua counts from 1.
var layoutLua = fmt.Sprintf(`local function tag(v) return string.sub(v, 1, %d) end
local function attempt(v) return string.sub(v, %d, %d) end
local function promised(v) return string.sub(v, %d, %d) end
local function accepted(v) return string.sub(v, %d, %d) end
local none = '%s'
local function token(v)
  if tag(v) == '%s' then return string.sub(v, %d) end
  if tag(v) ~= '%s' or string.sub(v, %d, %d) ~= 'v' then return nil end
  return string.sub(v, %d + %d * tonumber(string.sub(v, %d, %d)))
end
local function get(key)
  local v = redis.pcall('get', key)
  if type(v) == 'table' then return '%s' end
  return v
end
`, tagSize, tagSize+1, plainHeadSize, plainHeadSize+1, plainHeadSize+idDigits, plainHeadSize+idDigits+1, registerHeadSize, noBallot,
	plainTag, plainHeadSize+1,
	registerTag, registerHeadSize+1, registerHeadSize+1,
	registerHeadSize+4, changeSize, registerHeadSize+2, registerHeadSize+3, wrongType)

// wrongType replaces the value of a key that is not a string.
const wrongType = "#not a string"

func formatMillis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// decode decodes 1 (done), or {1 or 0, value or nil, PTTL, …} for this number of keys. If timed is
// set, the master's time in seconds and microseconds follows.
func decode(answer any, keys int, timed bool) (Answer, error) {
	if answer == int64(1) {
		return Answer{Applied: true}, nil
	}
	parts, _ := answer.([]any)
	want := 1 + 2*keys
	if timed {
		want += 2
	}
	if len(parts) != want {
		return Answer{}, unexpectedAnswer(answer)
	}
	a := Answer{Applied: parts[0] == int64(1), KeyStates: make([]KeyState, keys)}
	for i := range a.KeyStates {
		text, present := parts[1+2*i].(string)
		if !present && parts[1+2*i] != nil {
			return Answer{}, fmt.Errorf("unexpected value %.80v", parts[1+2*i])
		}
		left, ok := parts[2+2*i].(int64)
		if !ok {
			return Answer{}, fmt.Errorf("unexpected remaining time %.80v", parts[2+2*i])
		}
		a.KeyStates[i] = decodeState(text, present, left)
	}
	if timed {
		now, err := decodeTime(parts[want-2], parts[want-1])
		if err != nil {
			return Answer{}, err
		}
		a.Now = now
	}
	return a, nil
}

func decodeState(text string, present bool, timeLeft int64) KeyState {
	if !present || timeLeft == -2 {
		return KeyState{}
	}
	return KeyState{Cell: Parse(text), TimeLeft: timeLeftOf(timeLeft)}
}

// timeLeftOf returns the remaining time of a key that exists.
func timeLeftOf(pttl int64) time.Duration {
	if pttl < 0 {
		return NoExpiry
	}
	return time.Duration(pttl) * time.Millisecond
}

// decodeTime decodes the reply to TIME.
func decodeTime(seconds, micros any) (time.Duration, error) {
	s, _ := seconds.(string)
	us, _ := micros.(string)
	wholeSeconds, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("unexpected time: %w", err)
	}
	microseconds, err := strconv.ParseInt(us, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("unexpected time: %w", err)
	}
	return time.Duration(wholeSeconds)*time.Second + time.Duration(microseconds)*time.Microsecond, nil
}

func unexpectedAnswer(answer any) error { return fmt.Errorf("unexpected reply %.80v", answer) }
