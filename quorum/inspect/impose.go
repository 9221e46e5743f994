package inspect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/master"
)

// SettingsAdvice returns a remedy for proxies with different settings (Finding.Differs).
func SettingsAdvice(differs string) string { return guard.RulesAdvice(differs) }

// TTLAdvice returns a remedy for masters that wait for max-ttl (Finding.Quarantine), if a TTL of at
// least atLeast is known to be in use.
func TTLAdvice(atLeast time.Duration) string { return guard.Advice(atLeast) }

// Imposed is the result of Impose for one master.
type Imposed struct {
	// Name is the address of the master.
	Name string
	// Differed describes the settings that were different, or is empty.
	Differed string
	// Err is the reason why the master was not changed, or nil.
	Err error
}

// Impose is an operator's override. It replaces the settings (Options.Settings) and the list of
// masters of all proxies, without which masters do not vote for a proxy. Each master may take up to
// timeout for each reply. secure is Options.TLS.
//
// Impose returns an *UnlikeError if proxies with different settings are running, which would lose
// their votes, unless forced is set.
func Impose(
	ctx context.Context, urls []string, timeout time.Duration, secure func(*tls.Config), settings string, forced bool,
) ([]Imposed, error) {
	visits, done := make([]guard.Inspection, len(urls)), make([]Imposed, len(urls))
	for i, url := range urls {
		visits[i].Name, done[i].Name = master.NameIn(url), master.NameIn(url)
		t, err := master.NewTransport(url, timeout, secure)
		if err != nil {
			done[i].Err = err
			continue
		}
		defer t.Close()
		visits[i].Conn = t
	}
	for until := time.Now().Add(guard.ProxyTimeout + recheckPause); ; {
		examineAll(ctx, visits, done)
		_, n := guard.CountProxies(settings, visits)
		if n == 0 || forced {
			break
		}
		if time.Now().After(until) || pacing.Sleep(ctx, recheckPause) != nil { // else a proxy may have ended just now
			return nil, &UnlikeError{n}
		}
	}
	for i, differs := range guard.Differences(settings, visits) {
		done[i].Differed = differs
	}
	for i, err := range guard.ReplaceSettings(ctx, settings, visits) {
		if err != nil {
			done[i].Err = errors.New(errorText(err))
		}
	}
	return done, nil
}

// recheckPause is the pause between two checks whether proxies have ended.
const recheckPause = 250 * time.Millisecond

// examineAll examines the masters that have a connection.
func examineAll(ctx context.Context, visits []guard.Inspection, done []Imposed) {
	var all sync.WaitGroup
	for i := range visits {
		if visits[i].Conn == nil {
			continue
		}
		all.Go(func() {
			visits[i].Report, done[i].Err = nil, nil
			v, err := visits[i].Conn.Examine(ctx)
			if err != nil {
				done[i].Err = errors.New(errorText(err))
				return
			}
			visits[i].Report = &v
		})
	}
	all.Wait()
}

// UnlikeError means that a number of proxies with different settings are running.
type UnlikeError struct{ Proxies int }

// Error returns a sentence with a remedy.
func (e *UnlikeError) Error() string {
	if e.Proxies == 1 {
		return "1 proxy with different settings is running and would lose its votes; stop it first"
	}
	return fmt.Sprintf(
		"%d proxies with different settings are running and would lose their votes; stop them first", e.Proxies)
}
