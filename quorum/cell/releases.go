package cell

import (
	"strconv"

	"github.com/tidwall/redcon"

	"redlock-proxy/internal/luascript"
)

// Releases are several removals of plain cells, as Release has them, of different keys, that go
// as one script: a master spends half as much on each of eight as on eight scripts.
type Releases []Remove

// releasesScript answers 1 where all were deleted, else for each what removeScript answers, one
// after the other.
var releasesScript = luascript.New(`local held, gone = redis.call('mget', unpack(KEYS)), {}
for i, key in ipairs(KEYS) do
  local v = held[i]
  if v and string.sub(v, 1, ` + lua(plainHead) + `) == '` + plainMark + `' .. ARGV[i] then gone[#gone + 1] = key end
end
if #gone > 0 then redis.call('del', unpack(gone)) end
if #gone == #KEYS then return 1 end
` + layoutLua + `local answer, n = {}, 1
for i, key in ipairs(KEYS) do
  local did, v, left = 1, false, -2
  if gone[n] == key then
    n = n + 1
  else
    did, v = 0, get(key)
    if v and attempt(v) == ARGV[i] and (mark(v) == '` + blockingMark + `' or mark(v) == '` + placeMark + `') then
      redis.call('del', key)
      left = -1
    else
      left = redis.call('pttl', key)
    end
  end
  answer[3 * i - 2], answer[3 * i - 1], answer[3 * i] = did, v, left
end
return answer`)

// AppendTo appends the command that does them. With whole set the script is sent as such instead
// of by its SHA.
func (rs Releases) AppendTo(b []byte, whole bool) []byte {
	b = redcon.AppendArray(b, 3+2*len(rs))
	if whole {
		b = redcon.AppendBulkString(redcon.AppendBulkString(b, "EVAL"), releasesScript.Source)
	} else {
		b = redcon.AppendBulkString(redcon.AppendBulkString(b, "EVALSHA"), releasesScript.SHA)
	}
	b = redcon.AppendBulkString(b, strconv.Itoa(len(rs)))
	for _, r := range rs {
		b = redcon.AppendBulkString(b, r.Name)
	}
	for _, r := range rs {
		b = redcon.AppendBulkString(b, string(r.Attempt))
	}
	return b
}

// Decode reads the master's answer, which is no error, and reports that to each removal. None of
// what was reported is to be believed where it ends with an error.
func (rs Releases) Decode(answer any, report func(i int, a Answer)) error {
	parts, _ := answer.([]any)
	if answer != int64(1) && len(parts) != 3*len(rs) {
		return unexpected(answer)
	}
	for i, r := range rs {
		one := answer
		if answer != int64(1) {
			one = parts[3*i : 3*i+3]
		}
		a, err := r.Decode(one)
		if err != nil {
			return err
		}
		report(i, a)
	}
	return nil
}
