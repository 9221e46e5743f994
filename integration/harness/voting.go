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

// markTimeout bounds each answer of a master that is to be marked.
const markTimeout = 5 * time.Second

// errNotNew is for a master that has anything in it, or is none that can be marked without a proxy.
var errNotNew = errors.New("it is no new master")

// masters are those that proxies were started for, by their ports, which they keep over restarts.
type masters struct {
	mu  sync.Mutex
	met map[string]bool
}

// processMasters are those of this process: one that lost its data is not new.
var processMasters masters

// meet reports whether nobody was started for the master before.
func (m *masters) meet(port string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.met == nil {
		m.met = map[string]bool{}
	}
	first := !m.met[port]
	m.met[port] = true
	return first
}

// markNew has masters vote that are all new, as the fresh start of a proxy does that was there
// before: by its script, but without the 3 s for which that looks whether others use them. Where
// one of them is not new, or mark is false, nothing is done.
func (m *masters) markNew(urls []string, mark bool) {
	var all []newMaster
	defer func() {
		for _, one := range all {
			_ = one.client.Close()
		}
	}()
	for _, u := range urls {
		one, err := m.reachNew(u)
		mark = mark && err == nil
		if err == nil {
			all = append(all, one)
		}
	}
	if !mark {
		return
	}
	for _, one := range all {
		_, _ = one.client.Do("EVAL", guardscript.Admit.Source, "0", "", "", one.marker.String(), "0", marker.ProofFresh) // which looks once more
	}
}

// newMaster is one that is new, with the marker that it is to have.
type newMaster struct {
	client *redistest.Client
	marker marker.Marker
}

// reachNew connects to a master, and wants it to be new, and to keep nothing on a disk: of what
// does, a proxy has to learn how.
func (m *masters) reachNew(address string) (one newMaster, err error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "redis" || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return one, errNotNew
	}
	if one.client, err = redistest.Dial(u.Host, markTimeout); err != nil {
		return one, err
	}
	info, err := one.client.Do("INFO")
	if err == nil {
		one.marker, err = m.markerOf(fmt.Sprint(info), u.Host)
	}
	if err != nil {
		return one, errors.Join(err, one.client.Close())
	}
	return one, nil
}

var portPattern = regexp.MustCompile(`\btcp_port:(\d+)`)

// markerOf is the marker of a new master that has answered INFO with this.
func (m *masters) markerOf(info, name string) (marker.Marker, error) {
	has, port := guard.ReadInfo(info), portPattern.FindStringSubmatch(info)
	if port == nil || !m.meet(port[1]) || has.Unfit() != "" || has.Appendfsync != "off" || strings.Contains(info, "\ndb") {
		return marker.Marker{}, errNotNew
	}
	return marker.Marker{
		RunID: has.RunID, ReplID: has.ReplID, Evicted: has.Evicted, Nonce: marker.NewNonce(), Proof: marker.ProofFresh, Address: name,
	}, nil
}
