package status

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// eventAge is the time for which the page shows an event.
	eventAge = time.Hour
	// maxEvents is the maximum number of events in memory.
	maxEvents = 500
)

// eventKind describes the presentation of a log message on the page: its badge, and the attributes
// that the page shows.
type eventKind struct {
	// badge is the text of the badge, and tone its colour.
	badge, tone string
	// subjectAttr names the attribute with the subject of the event, and detailAttrs the attributes
	// with its details.
	subjectAttr string
	detailAttrs []string
}

// The tones of an event.
const (
	toneGood = "good"
	toneBad  = "bad"
	toneNote = "note"
)

// eventKinds returns the kinds of events, by log message. If an event concerns a key or a client,
// the page shows its attributes only if the page may show keys (event.namesKeys).
func eventKinds() map[string]eventKind {
	return map[string]eventKind{
		"serving clients":           {badge: "serving clients", tone: toneGood},
		"ready":                     {badge: "locks are available", tone: toneGood},
		"master down":               {"master down", toneBad, "master", []string{"cause"}},
		"master up":                 {"master up", toneGood, "master", []string{"was_down"}},
		"master in quarantine":      {"quarantine", toneBad, "master", []string{"cause"}},
		"master caught up":          {"catch-up", toneGood, "master", []string{"keys", "took"}},
		"master votes":              {"master votes", toneGood, "master", []string{"because"}},
		"locks are not available":   {"no locks", toneBad, "", []string{"cause"}},
		"locks are available again": {"locks are back", toneGood, "", []string{"without"}},
		"upstream down":             {"upstream down", toneBad, "upstream", []string{"cause"}},
		"upstream up":               {"upstream up", toneGood, "upstream", nil},
		"draining: closing idle clients, waiting for running commands": {"draining", toneNote, "", []string{"clients", "drain-timeout"}},
		"configuration reloaded":                                  {"reload", toneGood, "", []string{"by", "tls_cert_until"}},
		"configuration reloaded: no setting changed":              {"reload", toneGood, "", []string{"by", "tls_cert_until"}},
		"the configuration was not reloaded: nothing was changed": {"reload failed", toneBad, "", []string{"by", "cause"}},
		"the configuration was not reloaded yet: a change of the masters may continue by itself": {
			"reload not finished", toneNote, "", []string{"by", "cause"},
		},
		"the configuration was reloaded only in part; restart the proxy": {"reload failed", toneBad, "", []string{"by", "cause"}},
		"this proxy and another proxy do not match":                      {"proxies do not match", toneBad, "", []string{"cause"}},
		"users reloaded":             {"reload", toneGood, "", []string{"users", "changed", "gone"}},
		"this machine was suspended": {"suspended", toneBad, "", []string{"by"}},
		"lock keys are used at the upstream directly: clients of proxies do not see these locks; connect all clients to a proxy": {
			"locks at the upstream", toneBad, "lock_keys", []string{"seen"},
		},
		forceUnlock: {"FORCEUNLOCK", toneNote, "key", []string{"removed", "client.addr", "client.name", "client.user"}},
	}
}

// forceUnlock is the log message for which the page shows attributes that name a key and a client.
const forceUnlock = "FORCEUNLOCK"

// event holds an entry of the list of events.
type event struct {
	at   time.Time
	kind eventKind
	// subject and detail are texts that may come from clients and servers. If namesKeys is set, the
	// page shows these texts only if Options.Locks is set.
	subject, detail string
	namesKeys       bool
}

// Events holds the recent events. It is safe for concurrent use.
type Events struct {
	kinds map[string]eventKind

	mu    sync.Mutex
	ring  []event // once full, the oldest event is at count % maxEvents
	count int     // since the start
}

// NewEvents returns an empty list of events.
func NewEvents() *Events { return &Events{kinds: eventKinds()} }

// WrapLogger returns a logger that writes to log, and that adds an event for each message of a
// known kind. A message of level info or above becomes an event even if log omits that level.
func (e *Events) WrapLogger(log *slog.Logger) *slog.Logger {
	return slog.New(eventHandler{Handler: log.Handler(), events: e})
}

// eventHandler implements the slog.Handler of Events.WrapLogger.
type eventHandler struct {
	slog.Handler
	events *Events
	attrs  []slog.Attr
}

// Enabled implements slog.Handler.
func (w eventHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || w.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (w eventHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return eventHandler{w.Handler.WithAttrs(attrs), w.events, append(slices.Clip(w.attrs), attrs...)}
}

// WithGroup implements slog.Handler. It ignores the group for events: no kind uses one.
func (w eventHandler) WithGroup(name string) slog.Handler {
	return eventHandler{w.Handler.WithGroup(name), w.events, w.attrs}
}

// Handle implements slog.Handler.
func (w eventHandler) Handle(ctx context.Context, r slog.Record) error {
	if k, is := w.events.kinds[r.Message]; is {
		w.events.add(newEvent(k, r, w.attrs))
	}
	if !w.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return w.Handler.Handle(ctx, r)
}

// newEvent returns the event of a log record. loggerAttrs are the attributes of the logger.
func newEvent(k eventKind, r slog.Record, loggerAttrs []slog.Attr) event {
	texts := map[string]string{}
	for _, a := range loggerAttrs {
		flatten(texts, "", a)
	}
	r.Attrs(func(a slog.Attr) bool { flatten(texts, "", a); return true })
	e := event{at: r.Time, kind: k, subject: makePrintable(texts[k.subjectAttr]), namesKeys: r.Message == forceUnlock}
	var details []string
	for _, name := range k.detailAttrs {
		switch text := texts[name]; {
		case text == "":
		case name == "cause", name == "because":
			details = append(details, makePrintable(text))
		case name == "without":
			details = append(details, "after "+makePrintable(text))
		default:
			details = append(details, strings.NewReplacer(".", " ", "_", " ").Replace(name)+" "+makePrintable(text))
		}
	}
	e.detail = strings.Join(details, ", ")
	return e
}

// flatten adds an attribute to into. It prefixes the attributes of a group with the group's name.
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

func (e *Events) add(added event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.ring) < maxEvents {
		e.ring = append(e.ring, added)
	} else {
		e.ring[e.count%maxEvents] = added
	}
	e.count++
}

// eventsAfter returns the events that follow the first count events and are younger than eventAge.
// It also returns the number of events since the start.
func (e *Events) eventsAfter(count int, now time.Time) ([]event, int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	oldest := e.count - len(e.ring)
	if count < oldest || count > e.count {
		count = oldest
	}
	var result []event
	for i := count; i < e.count; i++ {
		if kept := e.ring[i%maxEvents]; now.Sub(kept.at) < eventAge {
			result = append(result, kept)
		}
	}
	return result, e.count
}
