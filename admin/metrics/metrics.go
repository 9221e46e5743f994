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

// maxRequests is how many may ask for the metrics at a time.
const maxRequests = 4

// Metrics are those of one proxy. They are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	meters   meters
	trips    *prometheus.HistogramVec
	// perMaster are those of trips, by the number of the master: of the masters of now.
	perMaster atomic.Pointer[[]prometheus.Observer]
}

// New makes metrics of a proxy of that version.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.meters = newMeters(m.registry)
	m.trips = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "redlock_master_round_trip_seconds", Buckets: shortBuckets(),
		Help: "Time from sending a batch of lock operations to a master until all of it was answered.",
	}, []string{"master"})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "redlock_build_info", Help: "Always 1. The version of the proxy and of Go are in the labels.",
		ConstLabels: prometheus.Labels{"version": strings.ToValidUTF8(version, "?"), "goversion": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(m.trips, build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// RoundTrips is to be told how long the batches of the masters took; names are theirs, by number.
// It is called again when other masters follow.
func (m *Metrics) RoundTrips(names []string) func(master int, took time.Duration) {
	var all []prometheus.Observer
	for _, name := range labels(names) {
		all = append(all, m.trips.WithLabelValues(name))
	}
	m.perMaster.Store(&all)
	return func(master int, took time.Duration) { all[master].Observe(took.Seconds()) }
}

// Handler answers with the metrics, and with what the sources return.
func (m *Metrics) Handler(from Sources) http.Handler {
	m.registry.MustRegister(newCollector(from))
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxRequests,
		ErrorHandling:       promhttp.ContinueOnError, // of one metric; the others are there
	})
}

// labels make the names of masters fit for labels, of which no two may be the same.
func labels(names []string) []string {
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

// shortBuckets are for what takes a round trip or a few.
func shortBuckets() []float64 {
	return []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}
}
