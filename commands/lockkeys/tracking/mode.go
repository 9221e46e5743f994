package tracking

import (
	"github.com/tidwall/redcon"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/internal/resp"
)

// Mode holds the options of CLIENT TRACKING.
type Mode struct {
	On, Broadcast, OptIn, OptOut, NoLoop, Redirected bool
	Prefixes                                         []string
}

// Redis' errors.
const (
	errPrefix     = "ERR PREFIX option requires BCAST mode to be enabled"
	errBothOpts   = "ERR You can't specify both OPTIN mode and OPTOUT mode"
	errOptsAndBC  = "ERR OPTIN and OPTOUT are not compatible with BCAST"
	errSwitchOpts = "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, " +
		"and then re-enabling it with a different mode."
	errCachingMode = "ERR CLIENT CACHING can be called only when the client is in tracking mode " +
		"with OPTIN or OPTOUT mode enabled"
	errCachingYes = "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."
	errCachingNo  = "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."
)

// Subcommand returns "tracking" or "caching" for CLIENT TRACKING and CLIENT CACHING, else "".
func Subcommand(words [][]byte) string {
	if len(words) < 3 || syntax.Lower(words[0]) != "client" {
		return ""
	}
	if sub := syntax.Lower(words[1]); sub == "tracking" || sub == "caching" {
		return sub
	}
	return ""
}

// Invalidation returns the message that keys may have changed; nil means all keys.
func Invalidation(keys []string) []byte {
	b := redcon.AppendBulkString(resp.AppendHeader(nil, resp.Push, 2), "invalidate")
	if keys == nil {
		return append(b, "_\r\n"...)
	}
	b = redcon.AppendArray(b, len(keys))
	for _, key := range keys {
		b = redcon.AppendBulkString(b, key)
	}
	return b
}

// Parse parses the words of CLIENT TRACKING. errText is Redis' error reply.
func Parse(words []string) (m Mode, errText string) {
	if len(words) < 3 {
		return m, syntax.WrongArity("client|tracking")
	}
	for i := 3; i < len(words); i++ {
		switch option := syntax.LowerCString([]byte(words[i])); {
		case option == "redirect" && i+1 < len(words):
			i++
			m.Redirected = words[i] != "0"
		case option == "prefix" && i+1 < len(words):
			i++
			m.Prefixes = append(m.Prefixes, words[i])
		case option == "bcast":
			m.Broadcast = true
		case option == "optin":
			m.OptIn = true
		case option == "optout":
			m.OptOut = true
		case option == "noloop":
			m.NoLoop = true
		default:
			return m, syntax.ErrSyntax
		}
	}
	switch syntax.LowerCString([]byte(words[2])) {
	case "on":
		m.On = true
		return m, m.conflictError()
	case "off":
		return Mode{}, ""
	}
	return m, syntax.ErrSyntax
}

func (m Mode) conflictError() string {
	switch {
	case len(m.Prefixes) > 0 && !m.Broadcast:
		return errPrefix
	case m.Broadcast && (m.OptIn || m.OptOut):
		return errOptsAndBC
	case m.OptIn && m.OptOut:
		return errBothOpts
	}
	return ""
}

// SwitchError returns the error reply if the mode m cannot follow oldMode, else "".
func (m Mode) SwitchError(oldMode Mode) string {
	if oldMode.On && m.On && (oldMode.OptIn && m.OptOut || oldMode.OptOut && m.OptIn) {
		return errSwitchOpts
	}
	return ""
}

// CachingError returns the error reply if the mode does not allow CLIENT CACHING, else "".
func (m Mode) CachingError(yes bool) string {
	switch {
	case !m.On || !m.OptIn && !m.OptOut:
		return errCachingMode
	case yes && !m.OptIn:
		return errCachingYes
	case !yes && !m.OptOut:
		return errCachingNo
	}
	return ""
}

// remembers reports whether the Client remembers the keys that a command reads. caching is true if
// the client sent CLIENT CACHING for the command.
func (m Mode) remembers(caching bool) bool {
	switch {
	case !m.On, m.Broadcast, m.Redirected:
		return false
	case m.OptIn:
		return caching
	case m.OptOut:
		return !caching
	}
	return true
}
