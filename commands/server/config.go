package server

import (
	"strconv"
	"strings"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
)

// config is CONFIG GET: what tools ask about a server before they use it.
func (s *Server) config(c command.Call) {
	sub := syntax.Lower(c.Args[1])
	switch {
	case sub != "get":
		c.Out.Error(syntax.UnknownSubcommand("CONFIG", c.Args[1]))
	case len(c.Args) < 3:
		c.Out.Error(syntax.WrongArity("config|get"))
	default:
		s.configGet(c.Args[2:], c.Out)
	}
}

func (s *Server) configGet(patterns [][]byte, out *command.Reply) {
	settings := [][2]string{
		{"appendonly", "no"},
		{"databases", strconv.Itoa(databases)},
		{"maxclients", strconv.Itoa(s.opts.MaxClients())},
		{"notify-keyspace-events", ""},
		{"proto-max-bulk-len", "536870912"},
		{"replica-read-only", "yes"},
		{"save", ""},
		{"slave-read-only", "yes"},
		{"timeout", "0"},
	}
	var found [][2]string
	for _, s := range settings {
		if name, ok := settingAsked(patterns, s[0]); ok {
			found = append(found, [2]string{name, s[1]})
		}
	}
	out.Map(len(found))
	for _, s := range found {
		out.Bulk(s[0])
		out.Bulk(s[1])
	}
}

// settingAsked reports whether CONFIG GET asks for a setting, and under which name
// the answer shows it: as it was typed, or its own where a glob pattern found it.
func settingAsked(patterns [][]byte, name string) (shown string, ok bool) {
	for _, p := range patterns {
		switch word := syntax.Lower(p); {
		case word == name:
			return string(p), true
		case strings.ContainsAny(word, "*?[") && keys.Match(word, name):
			return name, true
		}
	}
	return "", false
}
