package harness

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
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

// markNew has masters vote that are all new, as the fresh start of a proxy does that was there before: by its script, but without the
// 3 s for which that looks whether others use them. Where one of them is not new, nothing is done.
func markNew(urls []string) {
	var masters []newMaster
	defer func() {
		for _, m := range masters {
			_ = m.client.Close()
		}
	}()
	for _, u := range urls {
		m, err := reachNew(u)
		if err != nil {
			return
		}
		masters = append(masters, m)
	}
	for _, m := range masters {
		_, _ = m.client.Do("EVAL", guardscript.Admit.Source, "0", "", "", m.marker.String(), "0", marker.ProofFresh) // which looks once more
	}
}

// newMaster is an empty master.
type newMaster struct {
	client *redistest.Client
	marker marker.Marker
}

// reachNew connects to a master, and wants it to be new, and to keep nothing on a disk: of what does, a proxy has to learn how.
func reachNew(address string) (m newMaster, err error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "redis" || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return m, errNotNew
	}
	if m.client, err = redistest.Dial(u.Host, markTimeout); err != nil {
		return m, err
	}
	info, err := m.client.Do("INFO")
	if err == nil {
		m.marker, err = markerOf(fmt.Sprint(info), u.Host)
	}
	if err != nil {
		return m, errors.Join(err, m.client.Close())
	}
	return m, nil
}

// markerOf is the marker of a new master that has answered INFO with this.
func markerOf(info, name string) (marker.Marker, error) {
	has := guard.ReadInfo(info)
	if has.Unfit() != "" || has.Appendfsync != "off" || strings.Contains(info, "\ndb") {
		return marker.Marker{}, errNotNew
	}
	return marker.Marker{
		RunID: has.RunID, ReplID: has.ReplID, Evicted: has.Evicted, Nonce: marker.NewNonce(), Proof: marker.ProofFresh, Address: name,
	}, nil
}
