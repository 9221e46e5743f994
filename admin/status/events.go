package status

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"redlock-proxy/quorum/guard/marker"
)

const (
	// eventTime is how long an event is shown, and maxEvents how many are kept.
	eventTime = time.Hour
	maxEvents = 500
)

// kind is how the page shows a line of the log. Of its attributes only those that are named here
// are told.
type kind struct {
	what, mood string
	// about is the attribute that says of what, details those that say more.
	about   string
	details []string
}

// The moods.
const (
	good = "good"
	bad  = "bad"
	note = "note"
)

// kinds are the events, by the message in the log: that is where they come from. What concerns a
// key or a client is shown by about and details only where keys may be shown, see private.
func kinds() map[string]kind {
	return map[string]kind{
		"clients are served":        {what: "clients are served", mood: good},
		"ready":                     {what: "locks are available", mood: good},
		"master down":               {"master down", bad, "master", []string{"cause"}},
		"master up":                 {"master up", good, "master", []string{"was_down"}},
		"master in quarantine":      {"quarantine", bad, "master", []string{"cause"}},
		"master caught up":          {"catch-up", good, "master", []string{"keys", "took"}},
		"master votes":              {"master votes", good, "master", []string{"proof"}},
		"locks are not available":   {"no locks", bad, "", []string{"cause"}},
		"locks are available again": {"locks are back", good, "", []string{"without"}},
		"upstream down":             {"upstream down", bad, "upstream", []string{"cause"}},
		"upstream up":               {"upstream up", good, "upstream", nil},
		"draining: closing idle clients, waiting for running commands":        {"draining", note, "", []string{"clients", "drain-timeout"}},
		"the configuration is reloaded":                                       {"reload", good, "", []string{"by", "tls_cert_until"}},
		"the configuration is reloaded: no setting changed":                   {"reload", good, "", []string{"by", "tls_cert_until"}},
		"the configuration is not reloaded: nothing is changed":               {"reload failed", bad, "", []string{"by", "cause"}},
		"the configuration is reloaded in parts: restart the proxy":           {"reload failed", bad, "", []string{"by", "cause"}},
		"other proxies differ":                                                {"other proxies differ", bad, "", []string{"how"}},
		"users are reloaded":                                                  {"reload", good, "", []string{"users", "changed", "gone"}},
		"the clock of this process stopped while that of the machine went on": {"clock stopped", bad, "", []string{"by"}},
		"lock keys are used at the upstream directly: clients of proxies do not see these locks; repoint the clients": {"locks at the upstream", bad, "lock_keys", []string{"seen"}},
		forced: {"FORCEUNLOCK", note, "key", []string{"removed", "client.addr", "client.name", "client.user"}},
	}
}

// forced is the message of which the attributes name a key and a client.
const forced = "FORCEUNLOCK"

// event is what happened.
type event struct {
	at   time.Time
	kind kind
	// about and detail are texts of others. private ones are shown where keys are.
	about, detail string
	private       bool
}

// Events are the last ones. They are safe for concurrent use.
type Events struct {
	kinds map[string]kind

	mu    sync.Mutex
	ring  []event // as in history
	count int
}

// NewEvents has none yet.
func NewEvents() *Events { return &Events{kinds: kinds()} }

// Watching is a logger that writes what log does, and whose lines these events are. What log leaves
// out because of its level is an event all the same.
func (e *Events) Watching(log *slog.Logger) *slog.Logger {
	return slog.New(watcher{Handler: log.Handler(), events: e})
}

// watcher is of Events.Watching. It is a slog.Handler.
type watcher struct {
	slog.Handler
	events *Events
	attrs  []slog.Attr
}

// Enabled is of slog.Handler.
func (w watcher) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || w.Handler.Enabled(ctx, level)
}

// WithAttrs is of slog.Handler.
func (w watcher) WithAttrs(attrs []slog.Attr) slog.Handler {
	return watcher{w.Handler.WithAttrs(attrs), w.events, append(slices.Clip(w.attrs), attrs...)}
}

// WithGroup is of slog.Handler. No event has a group of its own.
func (w watcher) WithGroup(name string) slog.Handler {
	return watcher{w.Handler.WithGroup(name), w.events, w.attrs}
}

// Handle is of slog.Handler.
func (w watcher) Handle(ctx context.Context, r slog.Record) error {
	if k, is := w.events.kinds[r.Message]; is {
		w.events.add(newEvent(k, r, w.attrs))
	}
	if !w.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return w.Handler.Handle(ctx, r)
}

// newEvent takes what its kind wants from a line.
func newEvent(k kind, r slog.Record, before []slog.Attr) event {
	texts := map[string]string{}
	for _, a := range before {
		flatten(texts, "", a)
	}
	r.Attrs(func(a slog.Attr) bool { flatten(texts, "", a); return true })
	e := event{at: r.Time, kind: k, about: shown(texts[k.about]), private: r.Message == forced}
	var details []string
	for _, name := range k.details {
		switch text := texts[name]; {
		case text == "":
		case name == "cause":
			details = append(details, shown(text))
		case name == "without":
			details = append(details, "after "+shown(text))
		case name == "proof":
			details = append(details, proven(text))
		default:
			details = append(details, strings.NewReplacer(".", " ", "_", " ").Replace(name)+" "+shown(text))
		}
	}
	e.detail = strings.Join(details, ", ")
	return e
}

// proven is what a proof says of a master that votes.
func proven(proof string) string {
	switch proof {
	case marker.ProofFresh:
		return "all masters are new"
	case marker.ProofRemark:
		return "it has all its data"
	case marker.ProofCaughtUp, marker.ProofJoined:
		return "it has what the others hold"
	case marker.ProofLease:
		return "all locks that it may have lost have ended"
	}
	return shown(proof)
}

// flatten writes down an attribute, and those of a group with its name before them.
func flatten(into map[string]string, group string, a slog.Attr) {
	value := a.Value.Resolve()
	if value.Kind() != slog.KindGroup {
		into[group+a.Key] = value.String()
		return
	}
	for _, inner := range value.Group() {
		flatten(into, group+a.Key+".", inner)
	}
}

func (e *Events) add(one event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.ring) < maxEvents {
		e.ring = append(e.ring, one)
	} else {
		e.ring[e.count%maxEvents] = one
	}
	e.count++
}

// after are the events that came after the first so many, but for those that are too old, and how
// many there were until now.
func (e *Events) after(count int, now time.Time) ([]event, int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	oldest := e.count - len(e.ring)
	if count < oldest || count > e.count {
		count = oldest
	}
	var found []event
	for i := count; i < e.count; i++ {
		if one := e.ring[i%maxEvents]; now.Sub(one.at) < eventTime {
			found = append(found, one)
		}
	}
	return found, e.count
}
