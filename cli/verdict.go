package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"redlock-proxy/conf"
	"redlock-proxy/daemon"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/availability"
	"redlock-proxy/quorum/inspect"
	"redlock-proxy/quorum/place"
)

// inspection is what check saw.
type inspection struct {
	masters []inspect.Finding
	// upstream is nil where there is none.
	upstream *inspect.Finding
	// unlike is how many proxies are running that have other settings.
	unlike int
	// at is where the locks are, and disputed what the upstream's record contradicts in that.
	at       place.Said
	disputed string
	// loops are servers that are this proxy itself, or lead back to it, or past it.
	loops []string
	// warnings are of the configuration, and of what could not be known.
	warnings []string
}

// verdict sums up an inspection: the code with which check ends, and why, the gravest first.
type verdict struct {
	code    int
	reasons []string
	// look decides whether locks are available, whatever the code says.
	look availability.Look
}

// verdictNames are the verdicts by their exit codes.
var verdictNames = map[int]string{0: "ok", exitUnsafe: "unsafe", exitUnavailable: "no locks", exitDegraded: "degraded", exitUnlike: "other settings"}

// String is the last line of check.
func (v verdict) String() string {
	return "verdict: " + verdictNames[v.code] + ": " + strings.Join(v.reasons, "; ")
}

// judge decides on an inspection. Unsafe beats everything: it must not go on. Then comes
// whether locks are available, then whether all is well.
func judge(cfg conf.Config, seen inspection) verdict {
	seen.compare()
	look, absent := seen.look(cfg)
	locks := look.Decide()
	var amiss []string
	if seen.upstream != nil && seen.upstream.Err != nil {
		amiss = append(amiss, fmt.Sprintf("upstream %s: %v", seen.upstream.Name, seen.upstream.Err))
	}
	if seen.upstream != nil {
		amiss = append(amiss, named("upstream "+seen.upstream.Name, seen.upstream.Amiss)...)
	}
	for _, f := range seen.masters {
		if f.Differs == "" { // which is told once, of all of them
			amiss = append(amiss, named(f.Name, f.Amiss)...)
		}
	}
	text := differs(seen.masters)
	switch unsafe := seen.unsafe(); {
	case len(unsafe) > 0:
		return verdict{exitUnsafe, append([]string{"it would not be safe to serve"}, unsafe...), look}
	case seen.unlike > 0 && text != "":
		return verdict{exitUnlike, []string{"your settings differ from those of the running proxies: " + text}, look}
	case locks.State != availability.Available:
		reasons := append(append([]string{locks.Cause}, absent...), amiss...)
		if look.Voting < quorum.Majority(look.Masters) {
			reasons = append(reasons, cure(seen.masters)...)
		}
		return verdict{exitUnavailable, reasons, look}
	case len(absent)+len(amiss) > 0:
		return verdict{exitDegraded, append(append(append([]string{look.Votes()}, absent...), amiss...), ofSettings(seen.masters)...), look}
	default:
		return verdict{0, []string{look.Votes()}, look}
	}
}

// look is what decides whether locks are available; absent says of the other masters why a proxy
// that starts now with this configuration would not count their votes.
func (s *inspection) look(cfg conf.Config) (look availability.Look, absent []string) {
	votes, absent := votesOf(cfg, s.masters)
	look = availability.Look{Movable: daemon.CanMove(cfg), Masters: len(s.masters), Voting: votes, Place: s.at.Place, Known: s.at.Known || votes < quorum.Majority(len(s.masters))}
	if f := s.upstream; f != nil {
		look.Upstream = cmp.Or(f.Err, f.Refusal)
	}
	return look, absent
}

// compare finds masters that are the upstream as well.
func (s *inspection) compare() {
	for _, m := range s.masters {
		if s.upstream != nil && m.IsSameServer(*s.upstream) {
			s.upstream.Unsafe = append(s.upstream.Unsafe, "upstream is the same server as master "+m.Name)
		}
	}
}

// unsafe is why locks could not be relied on.
func (s *inspection) unsafe() []string {
	all := slices.Clone(s.loops)
	if s.disputed != "" {
		all = append(all, s.disputed)
	}
	for _, f := range s.masters {
		all = append(all, named(f.Name, f.Unsafe)...)
	}
	if s.upstream != nil {
		all = append(all, named(s.upstream.Name, s.upstream.Unsafe)...)
	}
	return all
}

func named(name string, texts []string) []string {
	var all []string
	for _, text := range texts {
		all = append(all, name+": "+text)
	}
	return all
}

// votesOf counts the masters of which a proxy that starts now with this configuration would
// count the votes, and says why not of the others.
func votesOf(cfg conf.Config, masters []inspect.Finding) (votes int, absent []string) {
	fresh := cfg.FreshStart && allNew(masters)
	for _, f := range masters {
		switch {
		case f.Err != nil:
			absent = append(absent, fmt.Sprintf("%s: %v", f.Name, f.Err))
		case cfg.Guard && len(f.Unsafe) > 0:
			absent = append(absent, named(f.Name, f.Unsafe)...)
		case f.Votes || f.Differs == "" && (fresh || !cfg.Guard):
			votes++
		default:
			absent = append(absent, f.Name+": "+marker(f))
		}
	}
	return votes, absent
}

func allNew(masters []inspect.Finding) bool {
	return !slices.ContainsFunc(masters, func(f inspect.Finding) bool { return !f.New })
}

// cure is what an operator can do about masters that answer and do not vote.
func cure(masters []inspect.Finding) []string {
	if allNew(masters) {
		return []string{"if all of them are new: redlock-proxy init --longest-ttl 0s"}
	}
	if texts := ofSettings(masters); len(texts) > 0 {
		return texts
	}
	for _, f := range masters {
		if f.Err == nil && f.Quarantine != nil && f.Quarantine.Assumed {
			return []string{inspect.TTLAdvice(f.Quarantine.AtLeast)}
		}
	}
	return nil
}

// ofSettings says what differs from the settings of proxies that masters vote for.
func ofSettings(masters []inspect.Finding) []string {
	if text := differs(masters); text != "" {
		return []string{inspect.SettingsAdvice(text)}
	}
	return nil
}

// differs is what differs from those settings; empty: nothing does.
func differs(masters []inspect.Finding) string {
	for _, f := range masters {
		if f.Differs != "" {
			return f.Differs
		}
	}
	return ""
}
