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

// policy lets the page load its own files and its own data, and nothing else; it makes no markup of
// text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// databases is how many there are of which locks may be asked for.
const databases = 16

// Options are what a page shows. All functions must be set but Upstream and Locks; they are called
// for each answer, Totals and Clients also each second.
type Options struct {
	Proxy   func() Proxy
	Clients func() metrics.Clients
	Totals  func() metrics.Totals
	Masters func() []quorum.MasterStatus
	// Look sees whether locks are available.
	Look func() availability.Look
	// Upstream returns its address and, if it is down, why.
	Upstream func() (name string, err error)
	// Locks lists at most count locks of a database by a glob. Where it is nil, no keys and no
	// clients are shown.
	Locks func(ctx context.Context, db int, match string, count int) ([]Lock, error)
	// Events are shown as they come.
	Events *Events
	// Now is the clock. The default is time.Now.
	Now func() time.Time
}

// Page is an http.Handler for / and /status/.
type Page struct {
	opts    Options
	started time.Time
	history history
	locks   *lookout
	mux     *http.ServeMux
}

// New makes a page.
func New(opts Options) *Page {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	p := &Page{opts: opts, started: opts.Now(), mux: http.NewServeMux()}
	if opts.Locks != nil {
		p.locks = &lookout{list: opts.Locks}
	}
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the name above is wrong
	}
	page := http.FileServerFS(files)
	p.mux.Handle("GET /{$}", page)
	for _, name := range []string{"page.js", "plot.js", "page.css", "icon.svg"} {
		p.mux.Handle("GET /status/"+name, http.StripPrefix("/status", page))
	}
	p.mux.HandleFunc("GET /status/v1", p.tell)
	p.mux.HandleFunc("GET /status/v1/locks", p.tellLocks)
	return p
}

// Run takes samples until ctx ends.
func (p *Page) Run(ctx context.Context) {
	tick := time.Tick(samplePause)
	for {
		p.history.take(reading{p.opts.Now(), p.opts.Clients().Relayed, p.opts.Totals()})
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// ServeHTTP is of http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	p.mux.ServeHTTP(w, r)
}

// tell answers with the state of all, and with the samples and events that came after those that
// the page has.
func (p *Page) tell(w http.ResponseWriter, r *http.Request) {
	samples, err := count(r, "samples")
	events, err2 := count(r, "events")
	if err != nil || err2 != nil {
		http.Error(w, "samples and events are numbers", http.StatusBadRequest)
		return
	}
	answer(w, p.view(samples, events))
}

// count is a number of the query, 0 if it is not there.
func count(r *http.Request, name string) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err
}

// tellLocks answers with the locks that were found last, a few seconds ago.
func (p *Page) tellLocks(w http.ResponseWriter, r *http.Request) {
	if p.locks == nil {
		http.Error(w, "locks are not shown here: see the setting admin-locks", http.StatusForbidden)
		return
	}
	q := question{match: cmp.Or(r.URL.Query().Get("match"), "*")}
	var err error
	if q.db, err = count(r, "db"); err != nil || q.db >= databases {
		http.Error(w, "db is a number below "+strconv.Itoa(databases), http.StatusBadRequest)
		return
	}
	if len(q.match) > maxGlob {
		http.Error(w, "match is too long", http.StatusBadRequest)
		return
	}
	answer(w, viewLocks(p.locks.look(r.Context(), q)))
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who asked may have gone
}

// view is what is known now.
func (p *Page) view(samples, events int) view {
	now := p.opts.Now()
	about, look := p.opts.Proxy(), p.opts.Look()
	verdict := look.Decide()
	v := view{
		Version: version, Now: now.UnixMilli(), Locks: p.locks != nil,
		Proxy: proxyView{
			Version: about.Version, Started: p.started.UnixMilli(), Listen: about.Listen, State: about.State,
			Clients: about.Clients, ClientsLimit: about.ClientsLimit, Waiters: about.Waiters, Uncovered: about.Uncovered,
			LocksAt: look.LocksAt(), Strays: about.Strays,
		},
	}
	if p.opts.Upstream != nil {
		name, err := p.opts.Upstream()
		v.Upstream = &serverView{Name: shown(name), Up: err == nil}
		if err != nil {
			v.Upstream.Cause = shown(err.Error())
		}
	}
	v.Quorum = quorumView{
		OK: verdict.State == availability.Available, Paused: verdict.State == availability.Paused, Cause: shown(verdict.Cause),
		Voting: look.Voting, Masters: look.Masters, Majority: quorum.Majority(look.Masters),
	}
	for i, m := range p.opts.Masters() {
		v.Masters = append(v.Masters, viewMaster(m, p.history.roundTrip(i), now))
	}
	all, total := p.history.after(samples)
	v.Samples = viewSamples(all, total, v.Quorum.Masters)
	happened, until := p.opts.Events.after(events, now)
	v.Events = viewEvents(happened, until, p.locks != nil)
	return v
}
