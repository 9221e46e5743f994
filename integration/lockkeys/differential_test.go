//go:build integration

package lockkeys

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// stepsEnv sets the number of commands that TestLockKeysAsOneRedis compares in each protocol.
	stepsEnv = "REDLOCK_STEPS"
	// defaultSteps is the number of commands if stepsEnv is not set. With this number,
	// TestLockKeysAsOneRedis takes some seconds on two busy cores.
	defaultSteps = 4000

	scriptCount    = 150
	maxDifferences = 10
)

// TestLockKeysAsOneRedis checks that the proxy's replies are, byte for byte, the replies of a
// single Redis. It sends random commands, transactions and scripts on two lock keys. Only remaining
// times may differ a little, and commands that change both keys may be refused.
func TestLockKeysAsOneRedis(t *testing.T) {
	steps, seed := int(kit.SizeFrom(t, stepsEnv, defaultSteps)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d commands in each protocol (%s); seed %d (%s)", steps, stepsEnv, seed, kit.SeedEnv)
	args := kit.LockKeyArgs(kit.StartRedis(t))
	proxy, single := kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), args...), kit.StartReference(t)
	for _, resp := range []string{"2", "3"} {
		t.Run("RESP"+resp, func(t *testing.T) {
			p := startPair(t, proxy.Addr(), single.Addr(), resp)
			p.observer = kit.Connect(t, proxy)
			differences := p.compare(t, seed, steps)
			t.Logf("refused: %d of %d steps that may be; %d late replies", p.refusedCount, p.refusableCount, p.lateCount)
			if p.lateCount > steps/4 {
				t.Errorf("%d late replies: too few commands are compared", p.lateCount)
			}
			if len(differences) > 0 {
				t.Errorf("%d DIFFERENCES (it stops at %d):\n%s", len(differences), maxDifferences,
					strings.Join(differences, "\n"))
			}
		})
	}
}

// TestDetectionOfForeignWrite checks that two Redis servers do not differ until a client writes
// to one of them, and that compare then finds the difference.
func TestDetectionOfForeignWrite(t *testing.T) {
	redistest.SkipShort(t)
	firstServer, secondServer, seed := kit.StartReference(t), kit.StartReference(t), rand.Uint64()
	for _, resp := range []string{"2", "3"} {
		p := startPair(t, firstServer.Addr(), secondServer.Addr(), resp)
		p.bothRedis = true
		if differences := p.compare(t, seed, 3000); len(differences) > 0 {
			t.Fatalf("seed %d: two Redises differ: %s", seed, differences[0])
		}
	}
	p := startPair(t, firstServer.Addr(), secondServer.Addr(), "2")
	p.bothRedis = true
	otherClient, err := redistest.Dial(firstServer.Addr(), kit.WaitLimit)
	kit.Must(t, err)
	defer otherClient.Close()
	p.beforeGroup = func() { kit.Do(t, otherClient, "SET", lockKeyNames()[0], "of nobody") }
	if len(p.compare(t, seed, 2000)) == 0 {
		t.Error("no difference was found: TestLockKeysAsOneRedis shows nothing")
	}
}

func lockKeyNames() []string { return []string{"lock:a", "lock:{b}:\xff"} }

// compare sends the given number of commands, and describes the replies that differ. After a
// difference or a refusal it starts again without keys, and after a late reply with new keys.
func (p *pair) compare(t *testing.T, seed uint64, steps int) (differences []string) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, uint64(p.resp[0])))
	k := &commandGenerator{random: random, keys: p.keys, scripts: luaScripts(random, scriptCount)}
	kit.Must(t, p.reset())
	for sent := 0; sent < steps && len(differences) < maxDifferences; {
		if p.beforeGroup != nil {
			p.beforeGroup()
		}
		group := k.nextSteps()
		refusedBefore, lateBefore := p.refusedCount, p.lateCount
		difference, err := p.compareGroup(t, group)
		kit.Must(t, err)
		sent += len(group)
		if difference != "" {
			differences = append(differences, difference)
		}
		if p.lateCount > lateBefore {
			p.keys = newNames(p.keys)
			k.keys = p.keys
		}
		if difference != "" || p.refusedCount > refusedBefore || p.lateCount > lateBefore {
			kit.Must(t, p.reset())
		}
	}
	return differences
}

// newNames returns other names for keys. Keys with the same tag have the same new tag.
func newNames(keys []string) (names []string) {
	for _, key := range keys {
		names = append(names, strings.ReplaceAll(key, "lock:", "lock:'"))
	}
	return names
}

// compareGroup sends a group of commands up to the first command that the proxy refuses, whose
// replies differ, or whose reply is late.
func (p *pair) compareGroup(t *testing.T, group []step) (string, error) {
	t.Helper()
	for _, s := range group {
		before := p.readKeys(t, s)
		answers, err := p.sendToBoth(s)
		if err != nil {
			return "", err
		}
		if kit.IsLateText(answers[0].raw) {
			p.lateCount++
			return "", nil
		}
		if before != "" {
			p.refusableCount++
		}
		if before != "" && p.isRefusal(answers[0].raw) {
			p.refusedCount++
			if after := p.readKeys(t, s); after != before {
				return fmt.Sprintf("%q\n  was refused, and yet changed %s\n  to %s\nafter\n%s", s.words, before, after,
					p.lastCommands(12)), nil
			}
			return "", nil
		}
		if !sameReply(answers[0], answers[1], s.hasTimes) {
			return fmt.Sprintf("%q\n  got  %q\n  want %q\nafter\n%s", s.words, answers[0].raw, answers[1].raw,
				p.lastCommands(12)), nil
		}
	}
	return "", nil
}

// readKeys returns the values of the proxy's keys, if the proxy may refuse a step.
func (p *pair) readKeys(t *testing.T, s step) string {
	t.Helper()
	if !s.refusable || p.observer == nil {
		return ""
	}
	var values []any
	for _, db := range []string{"0", "1"} {
		kit.Do(t, p.observer, "SELECT", db)
		for _, key := range p.keys {
			value, _ := kit.DoInTime(t, p.observer, "GET", key)
			values = append(values, value)
		}
	}
	return fmt.Sprintf("%q", values)
}

// isRefusal reports whether a reply refuses to change several lock keys together, and names them.
func (p *pair) isRefusal(raw string) bool {
	a, b := fmt.Sprintf("'%s'", p.keys[0]), fmt.Sprintf("'%s'", p.keys[1])
	return strings.HasPrefix(raw, "-ERR lock keys '") && strings.Contains(raw, " cannot be changed together: ") &&
		strings.Contains(raw, a) && strings.Contains(raw, b)
}
