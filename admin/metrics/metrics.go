package metrics

import (
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxRequests is the maximum number of concurrent scrapes.
const maxRequests = 4

// Metrics holds the metrics of one proxy. It is safe for concurrent use.
type Metrics struct {
	registry   *prometheus.Registry
	meters     meters
	roundTrips *prometheus.HistogramVec
	// byMaster holds the observers of roundTrips, by the index of the master.
	byMaster atomic.Pointer[[]prometheus.Observer]
}

// New returns the metrics of a proxy with that version. lossReasons holds the reasons for the loss
// of a kept lock.
func New(version string, lossReasons ...string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.meters = newMeters(m.registry, lossReasons)
	m.roundTrips = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "redlock_master_round_trip_seconds", Buckets: shortBuckets(),
		Help: "Time from sending a batch of lock operations to a master until the last answer to it.",
	}, []string{"master"})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "redlock_build_info", Help: "Always 1. The version of the proxy and of Go are in the labels.",
		ConstLabels: prometheus.Labels{"version": strings.ToValidUTF8(version, "?"), "goversion": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(m.roundTrips, build, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// RoundTripRecorder returns a function that records how long a batch to a master took. That
// function takes the index of the master in names. When the list of masters changes, the caller
// calls RoundTripRecorder again.
func (m *Metrics) RoundTripRecorder(names []string) func(master int, took time.Duration) {
	var observers []prometheus.Observer
	for _, name := range masterLabels(names) {
		observers = append(observers, m.roundTrips.WithLabelValues(name))
	}
	m.byMaster.Store(&observers)
	return func(master int, took time.Duration) { observers[master].Observe(took.Seconds()) }
}

// Handler returns a handler that serves the metrics and the values of the sources.
func (m *Metrics) Handler(sources Sources) http.Handler {
	m.registry.MustRegister(newCollector(sources))
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxRequests,
		// An error in one metric must not hide the other metrics.
		ErrorHandling: promhttp.ContinueOnError,
	})
}

// masterLabels turns the names of masters into distinct, valid values for a label.
func masterLabels(names []string) []string {
	seen, all := map[string]bool{}, make([]string, len(names))
	for i, name := range names {
		name = strings.ToValidUTF8(name, "?")
		if seen[name] {
			name += "#" + strconv.Itoa(i)
		}
		seen[name], all[i] = true, name
	}
	return all
}

// shortBuckets returns the buckets, in seconds, for operations of one or a few round trips.
func shortBuckets() []float64 {
	return []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}
}
