package inspect

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/master"
)

// SettingsAdvice returns a remedy for proxies with different settings (Finding.SettingsDifference).
func SettingsAdvice(differences string) string { return guard.RulesAdvice(differences) }

// TTLAdvice returns a remedy for masters that wait for max-ttl (Finding.Quarantine), if a TTL of at
// least minTTL is known to be in use.
func TTLAdvice(minTTL time.Duration) string { return guard.TTLAdvice(minTTL) }

// SettingsReplacement is the result of ReplaceSettings for one master.
type SettingsReplacement struct {
	// Name is the address of the master.
	Name string
	// Difference describes the settings that were different, or is empty.
	Difference string
	// Err is the reason why the master was not changed, or nil.
	Err error
}

// ReplaceSettings replaces the settings (quorum.Options.Settings) and the list of masters that all
// proxies must use, by order of an operator. Masters do not vote for proxies with different
// settings or a different list.
//
// ReplaceSettings returns a *DifferentSettingsError if proxies with different settings are running,
// which would lose their votes, unless forced is set.
func ReplaceSettings(
	ctx context.Context, urls []string, access master.Access, settings string, forced bool,
) ([]SettingsReplacement, error) {
	inspections, results := make([]guard.Inspection, len(urls)), make([]SettingsReplacement, len(urls))
	for i, url := range urls {
		inspections[i].Name, results[i].Name = master.NameFromURL(url), master.NameFromURL(url)
		t, err := master.NewTransport(url, access)
		if err != nil {
			results[i].Err = err
			continue
		}
		defer t.Close()
		inspections[i].Conn = t
	}
	for until := time.Now().Add(guard.ProxyTimeout + recheckPause); ; {
		examineAll(ctx, inspections, results)
		n := guard.CountProxies(settings, inspections).LosingProxies
		if n == 0 || forced {
			break
		}
		// Masters list a proxy for a while after it has stopped.
		if time.Now().After(until) || pacing.Sleep(ctx, recheckPause) != nil {
			return nil, &DifferentSettingsError{n}
		}
	}
	for i, differs := range guard.Differences(settings, inspections) {
		results[i].Difference = differs
	}
	for i, err := range guard.ReplaceSettings(ctx, settings, inspections) {
		if err != nil {
			results[i].Err = errors.New(errorText(err))
		}
	}
	return results, nil
}

// recheckPause is the pause between two checks whether proxies with different settings have
// stopped.
const recheckPause = 250 * time.Millisecond

// examineAll examines the masters that have a connection.
func examineAll(ctx context.Context, inspections []guard.Inspection, results []SettingsReplacement) {
	var wg sync.WaitGroup
	for i := range inspections {
		if inspections[i].Conn == nil {
			continue
		}
		wg.Go(func() {
			inspections[i].Report, results[i].Err = nil, nil
			v, err := inspections[i].Conn.Examine(ctx)
			if err != nil {
				results[i].Err = errors.New(errorText(err))
				return
			}
			inspections[i].Report = &v
		})
	}
	wg.Wait()
}

// DifferentSettingsError means that a number of proxies with different settings are running.
type DifferentSettingsError struct{ Proxies int }

// Error returns a sentence with a remedy.
func (e *DifferentSettingsError) Error() string {
	if e.Proxies == 1 {
		return "1 proxy with different settings is running and would lose its votes; stop it first"
	}
	return fmt.Sprintf(
		"%d proxies with different settings are running and would lose their votes; stop them first", e.Proxies)
}
