package cell

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"redlock-proxy/internal/luascript"
)

// FencePrefix begins the names of the fence counters. It is reserved for the proxies, so no lock
// has such a name.
const FencePrefix = "redlock-proxy:fence:"

// FenceKey returns the name of the fence counter of a lock key.
func FenceKey(name string) string { return FencePrefix + name }

// withFenceKeys returns the names of keys, and then the names of their counters.
func withFenceKeys(names []string) []string {
	all := append(make([]string, 0, 2*len(names)), names...)
	for _, name := range names {
		all = append(all, FenceKey(name))
	}
	return all
}

// MaxFence is the highest fence. Lua and JavaScript do not distinguish all numbers above it.
const MaxFence = 1<<53 - 1

// fenceTTL is the TTL that a counter gets whenever it is raised. No proxy proposes a fence below
// the masters' median time, so a new counter begins above an expired counter.
const fenceTTL = 7 * 24 * time.Hour

// maxFenceLead limits the lead of one counter over the other counters and the masters' median time.
const maxFenceLead = 366 * 24 * time.Hour

// CredibleFences sorts the counters of a key in place, and returns them in ascending order. It
// omits a counter that is more than a year ahead of all other counters and of now, the masters'
// median time. No proxy proposed such a counter.
func CredibleFences(counters []int64, now time.Duration) []int64 {
	slices.Sort(counters)
	n := len(counters)
	if n == 0 {
		return counters
	}
	reference := now.Microseconds()
	if n > 1 {
		reference = max(reference, counters[n-2])
	}
	if counters[n-1]-reference > maxFenceLead.Microseconds() {
		n--
	}
	return counters[:n]
}

// ParseFence returns the number of a counter. It returns 0 for any other text, such as the empty
// text of an absent counter.
func ParseFence(text string) int64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || len(text) > 16 || n > MaxFence {
		return 0
	}
	return int64(n)
}

// fenceLua defines the Lua function fence, which works like ParseFence but returns text.
var fenceLua = fmt.Sprintf(`local function fence(key)
  local f = redis.pcall('get', key)
  if type(f) ~= 'string' or #f > 16 or not string.match(f, '^%%d+$') or tonumber(f) > %d then return '0' end
  return f
end
`, MaxFence)

func (s *Store) fence(name string) int64 { return ParseFence(s.Get(FenceKey(name)).Value.Text) }

func (s *Store) raiseFence(name string, to int64) {
	s.Put(FenceKey(name), Parse(strconv.FormatInt(to, 10)), fenceTTL)
}

func decodeFence(part any) (int64, error) {
	text, ok := part.(string)
	if n := ParseFence(text); ok && (n > 0 || text == "0") {
		return n, nil
	}
	return 0, fmt.Errorf("unexpected fence %.80v", part)
}

// Raise raises the fence counters of keys, all or none. It does so if each counter is lower than
// Fence, and the master holds the attempt's cell under each key. So only masters that hold the lock
// accept the fence.
type Raise struct {
	Names   []string
	Attempt Attempt
	Fence   int64
}

// raiseScript takes the names of the keys, then the names of their counters.
var raiseScript = luascript.New(layoutLua + fenceLua + `local answer, n, accepts = {0}, #KEYS / 2, true
for i = 1, n do
  local v, f = get(KEYS[i]), fence(KEYS[n + i])
  local holds = v and attempt(v) == ARGV[1] and (tag(v) == '` + plainTag + `' or tag(v) == '` + registerTag + `')
  if not holds or tonumber(ARGV[2]) <= tonumber(f) then accepts = false end
  answer[2 * i], answer[2 * i + 1], answer[2 * n + 1 + i] = v, redis.call('pttl', KEYS[i]), f
end
if not accepts then return answer end
for i = 1, n do redis.call('set', KEYS[n + i], ARGV[2], 'px', ARGV[3]) end
return 1`)

func (r Raise) Keys() []string { return r.Names }

func (r Raise) Writes() bool { return true }

func (r Raise) Words(withSource bool) []any {
	return raiseScript.Command(withSource, withFenceKeys(r.Names), string(r.Attempt), r.Fence, formatMillis(fenceTTL))
}

func (r Raise) Decode(answer any) (Answer, error) { return decodeFenced(answer, len(r.Names)) }

func (r Raise) Apply(s *Store) Answer {
	refused, accepts := Answer{KeyStates: s.getAll(r.Names)}, true
	for i, f := range refused.KeyStates {
		fence := s.fence(r.Names[i])
		refused.Fences = append(refused.Fences, fence)
		holds := (f.Form == Plain || f.Form == Register) && f.Attempt == r.Attempt
		accepts = accepts && holds && r.Fence > fence
	}
	if !accepts {
		return refused
	}
	for _, name := range r.Names {
		s.raiseFence(name, r.Fence)
	}
	return Answer{Applied: true}
}

// decodeFenced decodes a reply that ends with the fences of its keys.
func decodeFenced(answer any, keys int) (Answer, error) {
	return decodeWithExtra(answer, keys, func(a *Answer, _ int, part any) error {
		n, err := decodeFence(part)
		a.Fences = append(a.Fences, n)
		return err
	})
}
