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
	shown := map[string]string{}
	for _, p := range c.Args[2:] {
		addMatches(string(p), settings, shown)
	}
	var fields command.Fields
	for _, s := range settings {
		if name, ok := shown[s[0]]; ok {
			fields = append(fields, name, s[1])
		}
	}
	c.Out.Put(fields)
}

// addMatches adds to shownNames the settings that a pattern of CONFIG GET requests. It maps each
// setting to the name under which the reply shows it: the pattern itself, or the setting's own name
// if a glob matched it.
func addMatches(pattern string, settings [][2]string, shownNames map[string]string) {
	word := syntax.Lower(pattern)
	isGlob, glob := strings.ContainsAny(word, "*?["), keys.Compile(word)
	for _, s := range settings {
		name := s[0]
		if shownNames[name] != "" {
			continue
		}
		if word == name {
			shownNames[name] = pattern
		} else if matches, _ := glob.Match(name); isGlob && matches {
			// A short name is never too complex.
			shownNames[name] = name
		}
	}
}
