package status

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"redlock-proxy/admin/metrics"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/availability"
)

//go:embed assets
var assets embed.FS

// contentSecurityPolicy is the Content-Security-Policy: the page may load only its own files and
// data, and its script cannot turn text into markup.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// databaseCount is the number of databases whose locks the page can list.
const databaseCount = 16

// Options holds the sources of a page. All but Upstream, Nodes, Locks and Now are required. The
// page calls Totals and Clients each second, and the other functions for each response with data.
type Options struct {
	Proxy   func() Proxy
	Clients func() metrics.Clients
	Totals  func() metrics.Totals
	Masters func() []quorum.MasterStatus
	// Availability returns the observed state of the servers that locks need, and the location of
	// the locks.
	Availability func() availability.Inputs
	// Upstream returns the address of the upstream, and an error if the upstream is down. On a
	// proxy without an upstream, Upstream is nil.
	Upstream func() (name string, err error)
	// Nodes returns the nodes of the cluster that is the upstream. If it is nil, the upstream is no
	// cluster.
	Nodes func() []Node
	// Locks returns at most count locks of a database that match a glob. If it is nil, the page
	// shows no keys and no clients.
	Locks func(ctx context.Context, db int, match string, count int) ([]Lock, error)
	// Events holds the events to show.
	Events *Events
	// Now returns the time. The default is time.Now.
	Now func() time.Time
}

// Page implements http.Handler for / and /status/.
type Page struct {
	opts      Options
	startTime time.Time
	history   history
	locks     *lister // nil: the page shows no keys
	mux       *http.ServeMux
}

// New returns a page.
func New(opts Options) *Page {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	p := &Page{opts: opts, startTime: opts.Now(), mux: http.NewServeMux()}
	if opts.Locks != nil {
		p.locks = &lister{list: opts.Locks}
	}
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // "assets" is not the embedded folder
	}
	page := http.FileServerFS(files)
	p.mux.Handle("GET /{$}", page)
	for _, name := range []string{"page.js", "plot.js", "page.css", "icon.svg"} {
		p.mux.Handle("GET /status/"+name, http.StripPrefix("/status", page))
	}
	p.mux.HandleFunc("GET /status/v1", p.serveStatus)
	p.mux.HandleFunc("GET /status/v1/locks", p.serveLocks)
	return p
}

// Run takes samples until ctx ends.
func (p *Page) Run(ctx context.Context) {
	tick := time.Tick(sampleInterval)
	for {
		p.history.add(snapshot{p.opts.Now(), p.opts.Clients().RelayedCommands, p.opts.Totals()})
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	p.mux.ServeHTTP(w, r)
}

// serveStatus serves /status/v1: the current state, and the samples and events that the browser
// lacks.
func (p *Page) serveStatus(w http.ResponseWriter, r *http.Request) {
	samples, err := queryNumber(r, "samples")
	events, err2 := queryNumber(r, "events")
	if err != nil || err2 != nil {
		http.Error(w, "samples and events must be numbers from 0 to 2147483647", http.StatusBadRequest)
		return
	}
	respondJSON(w, p.newStatusView(samples, events))
}

// queryNumber returns a number in the query of a request, or 0 if the query lacks it.
func queryNumber(r *http.Request, name string) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err
}

// serveLocks serves /status/v1/locks: a new listing, or the last listing of the same query while no
// new listing may start.
func (p *Page) serveLocks(w http.ResponseWriter, r *http.Request) {
	if p.locks == nil {
		http.Error(w, "the admin port does not show locks: keys may be secrets; enable the setting admin-locks to show them",
			http.StatusForbidden)
		return
	}
	q := query{match: cmp.Or(r.URL.Query().Get("match"), "*")}
	var err error
	if q.db, err = queryNumber(r, "db"); err != nil || q.db >= databaseCount {
		http.Error(w, "db must be a number from 0 to "+strconv.Itoa(databaseCount-1), http.StatusBadRequest)
		return
	}
	if len(q.match) > maxGlob {
		http.Error(w, "match must have at most "+strconv.Itoa(maxGlob)+" bytes", http.StatusBadRequest)
		return
	}
	respondJSON(w, newLocksView(p.locks.get(r.Context(), q)))
}

func respondJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the browser may have disconnected
}

// newStatusView returns the response to /status/v1. samples and events count the samples and events
// that the browser already has.
func (p *Page) newStatusView(samples, events int) statusView {
	now := p.opts.Now()
	proxy, inputs := p.opts.Proxy(), p.opts.Availability()
	locks := inputs.Decide()
	v := statusView{
		Version: version, Now: now.UnixMilli(), Locks: p.locks != nil,
		Proxy: proxyView{
			Version: proxy.Version, Started: p.startTime.UnixMilli(), Listen: proxy.Listen, State: proxy.State,
			Clients: proxy.Clients, ClientsLimit: proxy.ClientsLimit, Waiters: proxy.Waiters,
			UncoveredLocks: proxy.DetectedLocks, LockStorage: inputs.LockStorage(), DirectLocks: proxy.DirectLocks,
		},
	}
	if p.opts.Upstream != nil {
		name, err := p.opts.Upstream()
		var nodes []Node
		if p.opts.Nodes != nil {
			nodes = p.opts.Nodes()
		}
		v.Upstream = newUpstreamView(name, err, nodes)
	}
	v.Quorum = quorumView{
		OK:     locks.State == availability.Available,
		Paused: locks.State == availability.Paused,
		Cause:  makePrintable(locks.Cause),
		Voting: inputs.VotingMasters, Masters: inputs.Masters, Majority: quorum.Majority(inputs.Masters),
	}
	for i, m := range p.opts.Masters() {
		v.Masters = append(v.Masters, newMasterView(m, p.history.roundTrip(i), now))
	}
	all, total := p.history.samplesAfter(samples)
	v.Samples = newSamplesView(all, total, v.Quorum.Masters)
	happened, until := p.opts.Events.eventsAfter(events, now)
	v.Events = newEventsView(happened, until, p.locks != nil)
	return v
}
