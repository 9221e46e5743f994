package quorum

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"time"

	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/master"
)

// SettingsAdvice is what an operator can do where proxies have other settings (Finding.Differs).
func SettingsAdvice(differs string) string { return guard.RulesAdvice(differs) }

// Imposed is what Impose did to a master.
type Imposed struct {
	// Name is its address.
	Name string
	// Differed is which settings were other ones; empty: none.
	Differed string
	// Err is why it could not be done, or nil.
	Err error
}

// Impose has settings (Options.Settings) and masters be those of all proxies from now on, whatever these had: masters vote only for those that
// have the same. It is an operator's override. Each master may take as long as timeout for each answer; secure is Options.TLS.
func Impose(ctx context.Context, urls []string, timeout time.Duration, secure func(*tls.Config), settings string) []Imposed {
	visits, done := make([]guard.Visit, len(urls)), make([]Imposed, len(urls))
	var all sync.WaitGroup
	for i, url := range urls {
		visits[i].Name, done[i].Name = masterName(url), masterName(url)
		t, err := master.NewTransport(url, timeout, secure)
		if err != nil {
			done[i].Err = err
			continue
		}
		defer t.Close()
		visits[i].Conn = t
		all.Go(func() {
			v, err := t.Examine(ctx)
			if err != nil {
				done[i].Err = errors.New(findingText(err))
				return
			}
			visits[i].Report = &v
		})
	}
	all.Wait()
	for i, differs := range guard.Differences(settings, visits) {
		done[i].Differed = differs
	}
	for i, err := range guard.Impose(ctx, settings, visits) {
		if err != nil {
			done[i].Err = errors.New(findingText(err))
		}
	}
	return done
}
