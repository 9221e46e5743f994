package locks

import (
	"errors"
	"fmt"
	"sync"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/internal/contained"
	"redlock-proxy/quorum"
)

// maxKeys limits the keys of one command, because a master serves no other client while it runs the
// command.
const maxKeys = 64

// severalCommands returns MLOCK, MUNLOCK and MEXTEND. The arguments document the options, which are
// those of LOCK and EXTEND.
func (l *LockCommands) severalCommands(ttl, kept, block, fenced, at command.Argument) []*command.Command {
	return []*command.Command{
		{Name: "mlock", Arity: -6, RequiresLogin: true, Run: l.mlock, RunsWithoutClient: hasNoBlock, Docs: severalDocs(
			"Takes several locks, all or none, on a majority of the masters. Returns their validity in milliseconds, "+
				"or nil if another client holds one of them; with FENCE also a number higher than that of any earlier lock.",
			ttl, kept, block, fenced, at)},
		{Name: "munlock", Arity: -4, RequiresLogin: true, Run: l.munlock, RunsWithoutClient: alwaysWithoutClient, Docs: severalDocs(
			"Releases several locks. Returns the number of released locks; the others are not held with that token.")},
		{Name: "mextend", Arity: -6, RequiresLogin: true, Run: l.mextend, RunsWithoutClient: alwaysWithoutClient, Docs: severalDocs(
			"Sets a new TTL for several held locks. Returns their validity in milliseconds, "+
				"or nil if one is not held with that token.",
			ttl, kept, at)},
	}
}

// severalDocs returns the documentation of a command on several locks.
func severalDocs(summary string, args ...command.Argument) command.Docs {
	words := []command.Argument{command.Integer("numkeys"), command.Multiple(command.Key()), command.Text("token")}
	return command.Docs{
		Group: command.OwnGroup, Summary: summary, Since: "0.4.0",
		Complexity: "O(N*K) with N masters and K keys, in one round trip",
		Args:       append(words, args...), KeysAreCounted: true, Categories: "write slow",
	}
}

// mlock implements MLOCK numkeys key … token|* and the options of LOCK.
func (l *LockCommands) mlock(c command.Call) {
	l.take(c, grammar{name: "mlock", several: true, takesLock: true, maxTTL: l.MaxTTL()})
}

// munlock implements MUNLOCK numkeys key … token.
func (l *LockCommands) munlock(c command.Call) { l.release(c, grammar{name: "munlock", several: true}) }

// mextend implements MEXTEND numkeys key … token and the options of EXTEND.
func (l *LockCommands) mextend(c command.Call) {
	l.extendKeys(c, grammar{name: "mextend", several: true, maxTTL: l.MaxTTL()})
}

// parseKeyCount reads the number of keys of a command on several keys. A token follows the keys.
func parseKeyCount(command string, args [][]byte) (int, error) {
	n, ok := syntax.Int(args[1])
	switch {
	case !ok || n <= 0:
		return 0, errors.New("ERR numkeys should be greater than 0")
	case n > maxKeys:
		return 0, fmt.Errorf("ERR too many keys in '%s' command: the limit is %d; use fewer keys", command, maxKeys)
	case int(n) > len(args)-3:
		return 0, errors.New("ERR Number of keys can't be greater than number of args")
	}
	return int(n), nil
}

// onEach calls f with each index below n, and returns the results. The calls run at the same time,
// so that they share batches to the masters.
func onEach(n int, f func(i int) error) []error {
	errs := make([]error, n)
	if n == 1 {
		errs[0] = f(0)
		return errs
	}
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() { errs[i] = contained.Run(func() error { return f(i) }) })
	}
	calls.Wait()
	return errs
}

// firstFailure returns the first error other than quorum.ErrNotHeld, or nil.
func firstFailure(errs []error) error {
	for _, err := range errs {
		if err != nil && !errors.Is(err, quorum.ErrNotHeld) {
			return err
		}
	}
	return nil
}

// shortestLease returns the lease within which all locks are valid.
func shortestLease(leases []quorum.GrantedLock) quorum.GrantedLock {
	shortest := leases[0]
	for _, l := range leases[1:] {
		shortest.Validity = min(shortest.Validity, l.Validity)
		if l.LeaseStart.Before(shortest.LeaseStart) {
			shortest.LeaseStart = l.LeaseStart
		}
	}
	return shortest
}
