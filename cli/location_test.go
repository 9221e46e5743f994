package cli

import (
	"strings"
	"testing"

	"redlock-proxy/conf"
	"redlock-proxy/quorum/inspect"
	"redlock-proxy/quorum/location"
)

// TestLocationText checks the text of check about the location of the locks. After a change of the
// masters, which begins an era, the setting still decides. An aborted move has moved no locks.
func TestLocationText(t *testing.T) {
	const noEffect = "; move-from-upstream has no effect any more"
	for _, test := range []struct {
		at            location.EraPlace
		fromUpstream  bool
		want          string
		wantAtMasters bool
	}{
		{location.EraPlace{}, false, "at the masters; they were never moved", true},
		{location.EraPlace{Era: 1}, false, "at the masters; they were never moved", true},
		{location.EraPlace{}, true, "at the upstream (move-from-upstream) until redlock-proxy move", false},
		{location.EraPlace{Era: 1}, true, "at the upstream (move-from-upstream) until redlock-proxy move", false},
		{location.EraPlace{Place: location.Masters, Era: 2}, false, "at the masters (era 2)", true},
		{location.EraPlace{Place: location.Masters, Era: 2}, true, "at the masters (era 2)" + noEffect, true},
		{location.EraPlace{Place: location.Upstream, Era: 2}, false, "at the upstream (era 2)", false},
		{location.EraPlace{Place: location.Upstream, Era: 2}, true, "at the upstream (era 2)" + noEffect, false},
	} {
		cfg := conf.Config{MoveFromUpstream: test.fromUpstream}
		result := inspection{location: location.Report{EraPlace: test.at, Known: true}}
		if got := result.locationText(cfg); !strings.HasPrefix(got, test.want) || strings.HasSuffix(got, noEffect) !=
			strings.HasSuffix(test.want, noEffect) {
			t.Errorf("%v, move-from-upstream %v: got %q, want %q", test.at, test.fromUpstream, got, test.want)
		}
		inputs, _ := result.availabilityInputs(cfg)
		if got := inputs.Place == location.Masters; got != test.wantAtMasters {
			t.Errorf("%v, move-from-upstream %v: at %v", test.at, test.fromUpstream, inputs.Place)
		}
	}
}

// TestVerdictDuringChange checks the verdict while the masters are being changed. No server needs
// repair.
func TestVerdictDuringChange(t *testing.T) {
	result := inspection{masters: make([]inspect.Finding, 3), changing: true}
	v := judge(conf.Config{Guard: true, LockKeys: []string{"lock:*"}}, result)
	if v.code != exitUnavailable || !strings.HasPrefix(v.reasons[0], "the masters are being changed") ||
		!strings.HasPrefix(v.nextStep(), "wait a few seconds") {
		t.Errorf("%d, %v; next: %s", v.code, v, v.nextStep())
	}
}

// TestVerdictWithoutUpstream checks the verdict for a proxy without the upstream that holds the
// locks.
func TestVerdictWithoutUpstream(t *testing.T) {
	result := inspection{
		masters:  []inspect.Finding{{Votes: true}, {Votes: true}, {Votes: true}},
		location: location.Report{EraPlace: location.EraPlace{Place: location.Upstream, Era: 2}, Known: true},
	}
	v := judge(conf.Config{Guard: true, LockKeys: []string{"lock:*"}}, result)
	if v.code != exitUnavailable || v.reasons[0] != "the locks are at the upstream, which this proxy does not have" ||
		!strings.HasPrefix(v.nextStep(), "set upstream to the Redis that holds the locks") {
		t.Errorf("%d, %v; next: %s", v.code, v, v.nextStep())
	}
}
