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

// SettingsAdvice is what an operator can do where proxies have other settings (Finding.Differs).
func SettingsAdvice(differs string) string { return guard.RulesAdvice(differs) }

// TTLAdvice is what an operator can do where masters wait for max-ttl (Finding.Quarantine),
// although a TTL of at least so much is known.
func TTLAdvice(atLeast time.Duration) string { return guard.Advice(atLeast) }

// Imposed is what Impose did to a master.
type Imposed struct {
	// Name is its address.
	Name string
	// Differed is which settings were other ones; empty: none.
	Differed string
	// Err is why it could not be done, or nil.
	Err error
}

// Impose has settings (Options.Settings) and masters be those of all proxies from now on, whatever
// these had: masters vote only for those that have the same. It is an operator's override. Each
// master may take as long as timeout for each answer; secure is Options.TLS.
//
// The error says that proxies with other settings are running, which would lose their votes;
// forced: it is done all the same.
func Impose(ctx context.Context, urls []string, timeout time.Duration, secure func(*tls.Config), settings string, forced bool) ([]Imposed, error) {
	visits, done := make([]guard.Visit, len(urls)), make([]Imposed, len(urls))
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
	for until := time.Now().Add(guard.Heard + imposePause); ; {
		visit(ctx, visits, done)
		n := guard.Unlike(settings, visits)
		if n == 0 || forced {
			break
		}
		if time.Now().After(until) || pacing.Sleep(ctx, imposePause) != nil { // else it may have ended just now
			return nil, &UnlikeError{n}
		}
	}
	for i, differs := range guard.Differences(settings, visits) {
		done[i].Differed = differs
	}
	for i, err := range guard.Impose(ctx, settings, visits) {
		if err != nil {
			done[i].Err = errors.New(findingText(err))
		}
	}
	return done, nil
}

// imposePause is the wait between two looks whether proxies have ended.
const imposePause = 250 * time.Millisecond

// visit looks at the masters that can be reached.
func visit(ctx context.Context, visits []guard.Visit, done []Imposed) {
	var all sync.WaitGroup
	for i := range visits {
		if visits[i].Conn == nil {
			continue
		}
		all.Go(func() {
			visits[i].Report, done[i].Err = nil, nil
			v, err := visits[i].Conn.Examine(ctx)
			if err != nil {
				done[i].Err = errors.New(findingText(err))
				return
			}
			visits[i].Report = &v
		})
	}
	all.Wait()
}

// UnlikeError says that proxies are running that have other settings.
type UnlikeError struct{ Proxies int }

// Error is a sentence.
func (e *UnlikeError) Error() string {
	return fmt.Sprintf("proxies with other settings are running: %d; they would lose their votes: stop them first", e.Proxies)
}
