package cell

import (
	"strconv"

	"github.com/tidwall/redcon"

	"redlock-proxy/internal/luascript"
)

// Releases combines Removes of different keys (Mode: Release) into one script. For eight removals a
// master spends half as much time as on eight scripts.
type Releases []Remove

// releasesScript returns 1 if it deleted all cells. Otherwise it returns {1 or 0, value or nil,
// PTTL, …}, three elements for each key.
var releasesScript = luascript.New(`local held, gone = redis.call('mget', unpack(KEYS)), {}
for i, key in ipairs(KEYS) do
  local v = held[i]
  if v and string.sub(v, 1, ` + luaInt(plainHeadSize) + `) == '` + plainTag + `' .. ARGV[i] then gone[#gone + 1] = key end
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
    if v and attempt(v) == ARGV[i] and tag(v) == '` + markTag + `' then
      redis.call('del', key)
      left = -1
    else
      left = redis.call('pttl', key)
    end
  end
  answer[3 * i - 2], answer[3 * i - 1], answer[3 * i] = did, v, left
end
return answer`)

// AppendTo appends the command. If withSource is set, the command contains the script instead of
// its SHA-1.
func (rs Releases) AppendTo(b []byte, withSource bool) []byte {
	b = redcon.AppendArray(b, 3+2*len(rs))
	if withSource {
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

// Decode decodes a reply that is not an error, and calls report with the answer to each removal. If
// Decode returns an error, the caller must ignore these answers.
func (rs Releases) Decode(answer any, report func(i int, a Answer)) error {
	parts, _ := answer.([]any)
	if answer != int64(1) && len(parts) != 3*len(rs) {
		return unexpectedAnswer(answer)
	}
	for i, r := range rs {
		part := answer
		if answer != int64(1) {
			part = parts[3*i : 3*i+3]
		}
		a, err := r.Decode(part)
		if err != nil {
			return err
		}
		report(i, a)
	}
	return nil
}
