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
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/inspect"
	"redlock-proxy/quorum/location"
)

// inspection holds the findings of check.
type inspection struct {
	masters []inspect.Finding
	// upstream is nil if there is no upstream.
	upstream *inspect.Finding
	proxies  guard.ProxyCounts
	// location is the location of the locks according to the masters. contradiction describes how
	// the upstream's record contradicts the masters.
	location      location.Report
	contradiction string
	// changing is set if the masters are being changed, or the locks moved.
	changing bool
	// loops describes servers of the configuration that are this proxy or another redlock-proxy, or
	// that redirect clients past the proxy.
	loops []string
	// warnings holds the warnings of the configuration, and a warning about the upstream, if any.
	warnings []string
}

// verdict sums up an inspection: the exit code, and the reasons for it, the most severe first.
type verdict struct {
	code    int
	reasons []string
	// advice lists steps for the operator, if the findings show any. It ends the reasons in JSON,
	// and is the last line of the table.
	advice []string
	// inputs holds the facts that decide whether locks are available, independently of the code.
	inputs availability.Inputs
	// proxies is the number of running proxies. It is set only if the code is 0.
	proxies int
}

// verdictNames maps exit codes to the verdicts.
var verdictNames = map[int]string{
	0: "ok", exitUnsafe: "unsafe", exitUnavailable: "no locks", exitDegraded: "degraded",
	exitDiffering: "other settings",
}

// String returns the verdict as a line of check.
func (v verdict) String() string {
	return "verdict: " + verdictNames[v.code] + ": " + strings.Join(v.reasons, "; ")
}

// nextStep returns the step that the operator should take after this verdict.
func (v verdict) nextStep() string {
	switch {
	case len(v.advice) > 0:
		return strings.Join(v.advice, "; ")
	case v.code == 0 && v.proxies > 0:
		return fmt.Sprintf("nothing to do; proxies seen within the last %v: %d", guard.ProxyTimeout, v.proxies)
	case v.code == 0:
		return "start the proxies with these settings: redlock-proxy serve"
	case v.code == exitUnsafe:
		return "correct what the verdict names before you start a proxy, and run redlock-proxy check again"
	case v.code == exitDiffering:
		return "use the settings of the running proxies, and run redlock-proxy check again"
	case v.code == exitUnavailable && v.inputs.Changing:
		return "wait a few seconds, and run redlock-proxy check again; " +
			"if this lasts, start a proxy with the current masters: it completes the change"
	case v.code == exitUnavailable && v.inputs.Decide().State == availability.Paused:
		return "wait a few seconds, and run redlock-proxy check again"
	case v.code == exitUnavailable && v.inputs.LacksUpstream():
		return "set upstream to the Redis that holds the locks, or move the locks to the masters: " +
			"redlock-proxy move, at a proxy that has that upstream"
	case v.code == exitUnavailable:
		return "repair the servers that the verdict names, and run redlock-proxy check again"
	case v.inputs.UpstreamErr != nil:
		return "repair the upstream, and run redlock-proxy check again; a proxy that has not reached it serves no clients"
	default:
		return "repair what the verdict names, and run redlock-proxy check again; locks are granted in the meantime"
	}
}

// judge returns the verdict on an inspection. Unsafe findings come first, because then no proxy
// must serve clients. Different settings of the running proxies come next, then unavailable locks,
// then all other problems.
func judge(cfg conf.Config, result inspection) verdict {
	result.checkUpstreamIsNoMaster()
	inputs, missing := result.availabilityInputs(cfg)
	locks := inputs.Decide()
	var problems []string
	if result.upstream != nil && result.upstream.Err != nil {
		problems = append(problems, fmt.Sprintf("upstream %s: %v", result.upstream.Name, result.upstream.Err))
	}
	if result.upstream != nil {
		problems = append(problems, addPrefix("upstream "+result.upstream.Name, result.upstream.SettingsProblems)...)
	}
	for _, f := range result.masters {
		if f.SettingsDifference == "" { // judge reports different settings once, for all masters
			problems = append(problems, addPrefix(f.Name, f.SettingsProblems)...)
		}
	}
	difference := settingsDifference(result.masters)
	switch unsafe := result.unsafeReasons(); {
	case len(unsafe) > 0:
		return verdict{
			code: exitUnsafe, inputs: inputs,
			reasons: append([]string{"it would not be safe to serve"}, unsafe...),
		}
	case result.proxies.LosingProxies > 0 && difference != "":
		return verdict{
			code: exitDiffering, inputs: inputs,
			reasons: []string{"your settings differ from those of the running proxies: " + difference},
		}
	case result.proxies.RunningProxies > 0 && result.proxies.DifferingProxies == result.proxies.RunningProxies && difference == "":
		return verdict{
			code: exitDiffering, inputs: inputs,
			reasons: []string{"the masters do not vote for the running proxies: the masters have your settings, the proxies have different settings"},
			advice:  []string{"restart the proxies with your settings, and run redlock-proxy check again"},
		}
	case locks.State != availability.Available:
		v := verdict{code: exitUnavailable, inputs: inputs, reasons: slices.Concat([]string{locks.Cause}, missing, problems)}
		if inputs.VotingMasters < quorum.Majority(inputs.Masters) && !inputs.Changing {
			v.advice = votingAdvice(result.masters)
		}
		return v
	case len(missing)+len(problems) > 0:
		return verdict{
			code: exitDegraded, inputs: inputs,
			reasons: slices.Concat([]string{inputs.Votes()}, missing, problems), advice: settingsAdvice(result.masters),
		}
	default:
		return verdict{inputs: inputs, proxies: result.proxies.RunningProxies, reasons: []string{inputs.Votes()}}
	}
}

// availabilityInputs returns the facts that decide whether locks are available, for a proxy that
// starts now with this configuration. missingVotes holds the reason for each master whose vote the
// proxy would not count.
func (s *inspection) availabilityInputs(cfg conf.Config) (inputs availability.Inputs, missingVotes []string) {
	votes, missingVotes := countVotes(cfg, s.masters)
	inputs = availability.Inputs{
		Movable: daemon.CanMove(cfg), Masters: len(s.masters), VotingMasters: votes,
		Place: s.place(cfg), Known: s.location.Known,
		Changing: s.changing,
	}
	if f := s.upstream; f != nil {
		inputs.UpstreamErr = cmp.Or(f.Err, f.Refusal)
	}
	return inputs, missingVotes
}

// checkUpstreamIsNoMaster marks the upstream as unsafe if it is one of the masters, too.
func (s *inspection) checkUpstreamIsNoMaster() {
	for _, m := range s.masters {
		if s.upstream != nil && m.IsSameServer(*s.upstream) {
			s.upstream.SafetyProblems = append(s.upstream.SafetyProblems, "upstream is the same server as master "+m.Name)
		}
	}
}

// unsafeReasons returns the reasons why locks would not be safe.
func (s *inspection) unsafeReasons() []string {
	all := slices.Clone(s.loops)
	if s.contradiction != "" {
		all = append(all, s.contradiction)
	}
	for _, f := range s.masters {
		all = append(all, addPrefix(f.Name, f.SafetyProblems)...)
	}
	if s.upstream != nil {
		all = append(all, addPrefix(s.upstream.Name, s.upstream.SafetyProblems)...)
	}
	return all
}

func addPrefix(name string, texts []string) []string {
	var lines []string
	for _, text := range texts {
		lines = append(lines, name+": "+text)
	}
	return lines
}

// countVotes counts the masters whose votes a proxy that starts now with this configuration would
// count. missingVotes holds the reason for each master whose vote the proxy would not count.
func countVotes(cfg conf.Config, masters []inspect.Finding) (votes int, missingVotes []string) {
	fresh := startsFresh(cfg, masters)
	for _, f := range masters {
		switch {
		case f.Err != nil:
			missingVotes = append(missingVotes, fmt.Sprintf("%s: %v", f.Name, f.Err))
		case cfg.Guard && len(f.SafetyProblems) > 0:
			missingVotes = append(missingVotes, addPrefix(f.Name, f.SafetyProblems)...)
		case f.Votes || f.SettingsDifference == "" && (fresh || !cfg.Guard):
			votes++
		default:
			missingVotes = append(missingVotes, f.Name+": "+markerText(f))
		}
	}
	return votes, missingVotes
}

// startsFresh reports whether these masters would vote at the start of a proxy because all of them are
// new.
func startsFresh(cfg conf.Config, masters []inspect.Finding) bool {
	return cfg.FreshStart && allNew(masters)
}

func allNew(masters []inspect.Finding) bool {
	return !slices.ContainsFunc(masters, func(f inspect.Finding) bool { return !f.New })
}

// votingAdvice returns the steps that give masters their votes if they answer but do not vote.
func votingAdvice(masters []inspect.Finding) []string {
	if allNew(masters) {
		return []string{"if all masters are new: redlock-proxy init --longest-ttl 0s"}
	}
	if texts := settingsAdvice(masters); len(texts) > 0 {
		return texts
	}
	for _, f := range masters {
		if f.Err == nil && f.Quarantine != nil && f.Quarantine.AssumesMaxTTL {
			return []string{inspect.TTLAdvice(f.Quarantine.LongestKnownTTL)}
		}
	}
	return nil
}

// settingsAdvice returns the step to take if the masters vote only for proxies with different
// settings.
func settingsAdvice(masters []inspect.Finding) []string {
	if text := settingsDifference(masters); text != "" {
		return []string{inspect.SettingsAdvice(text)}
	}
	return nil
}

// settingsDifference returns the difference between these settings and the settings that the
// masters vote for, or an empty string.
func settingsDifference(masters []inspect.Finding) string {
	for _, f := range masters {
		if f.SettingsDifference != "" {
			return f.SettingsDifference
		}
	}
	return ""
}
