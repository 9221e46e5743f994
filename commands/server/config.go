package server

import (
	"strconv"
	"strings"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
)

// configGet implements CONFIG GET for the settings that tools ask for before they use a server.
func (s *Server) configGet(c command.Call) {
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
	var found command.Fields
	for _, s := range settings {
		if name, ok := requestedSetting(c.Args[2:], s[0]); ok {
			found = append(found, name, s[1])
		}
	}
	c.Out.Put(found)
}

// requestedSetting reports whether CONFIG GET asks for a setting, and under which name the reply
// shows it: as it was typed, or the setting's own name if a glob matched it.
func requestedSetting(patterns [][]byte, name string) (shown string, ok bool) {
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
