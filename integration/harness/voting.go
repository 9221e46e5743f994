package harness

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/guard/marker"
	guardscript "redlock-proxy/quorum/guard/script"
)

// markTimeout limits the wait for each reply of a new master.
const markTimeout = 5 * time.Second

// errNotNew means that a master has data, has been recorded before, or can get a marker only from a
// proxy.
var errNotNew = errors.New("the master is not new")

// masterRecord records the masters of started proxies by their ports, which restarts do not change.
type masterRecord struct {
	mu            sync.Mutex
	recordedPorts map[string]bool
}

// startedMasters records the masters of all proxies that this process has started. A recorded
// master is not new, even after it has lost its data.
var startedMasters masterRecord

// recordPort reports whether no proxy was started for the master before, and records the master.
func (m *masterRecord) recordPort(port string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.recordedPorts == nil {
		m.recordedPorts = map[string]bool{}
	}
	first := !m.recordedPorts[port]
	m.recordedPorts[port] = true
	return first
}

// markNew lets masters vote if all of them are new, as a proxy's fresh start does. markNew uses the
// same script, but skips the 3 s in which a fresh start checks whether other proxies use the
// masters. If one of the masters is not new, or mark is false, markNew only records the masters.
func (m *masterRecord) markNew(urls []string, mark bool) {
	var masters []newMaster
	defer func() {
		for _, one := range masters {
			_ = one.client.Close()
		}
	}()
	for _, u := range urls {
		one, err := m.connectNew(u)
		mark = mark && err == nil
		if err == nil {
			masters = append(masters, one)
		}
	}
	if !mark {
		return
	}
	for _, one := range masters {
		// The script checks again that the master is empty.
		_, _ = one.client.Do("EVAL", guardscript.Admit.Source, "0", "", "", one.marker.String(), "0", marker.ProofFresh)
	}
}

// newMaster holds a connection to a new master, and the marker that the master will get.
type newMaster struct {
	client *redistest.Client
	marker marker.Marker
}

// connectNew connects to a master. It returns errNotNew unless the master is new and has no
// persistence, because only a proxy can admit a master with persistence.
func (m *masterRecord) connectNew(address string) (master newMaster, err error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "redis" || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return master, errNotNew
	}
	if master.client, err = redistest.Dial(u.Host, markTimeout); err != nil {
		return master, err
	}
	info, err := master.client.Do("INFO")
	if err == nil {
		master.marker, err = m.newMarker(fmt.Sprint(info), u.Host)
	}
	if err != nil {
		return master, errors.Join(err, master.client.Close())
	}
	return master, nil
}

var portPattern = regexp.MustCompile(`\btcp_port:(\d+)`)

// newMarker returns the marker for a new master that sent this reply to INFO.
func (m *masterRecord) newMarker(info, name string) (marker.Marker, error) {
	has, port := guard.ReadInfo(info), portPattern.FindStringSubmatch(info)
	if port == nil || !m.recordPort(port[1]) ||
		has.UnfitCause() != "" || has.Appendfsync != "off" || strings.Contains(info, "\ndb") {
		return marker.Marker{}, errNotNew
	}
	return marker.Marker{
		RunID: has.RunID, ReplID: has.ReplID, Evicted: has.Evicted,
		Nonce: marker.NewNonce(), Proof: marker.ProofFresh, Address: name,
	}, nil
}
