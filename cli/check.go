package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"redlock-proxy/conf"
	"redlock-proxy/daemon"
	"redlock-proxy/internal/certs"
	"redlock-proxy/quorum/availability"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/inspect"
)

// jsonFlag makes check print JSON.
const jsonFlag = "json"

func checkFlags() []cli.Flag {
	return append(settingFlags(), &cli.BoolFlag{Name: jsonFlag, Usage: "print one JSON object"})
}

// checkAction connects to every server of the configuration, and prints the findings.
func checkAction(c *cli.Context) error {
	cfg, err := loadConfig(c)
	if err != nil {
		return err
	}
	if _, err := cfg.ClientPassword(); err != nil {
		return err
	}
	if _, err := daemon.LoadUsers(cfg, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	certificates, err := certs.Load(cfg.CertificateFiles())
	if err != nil {
		return err
	}
	result := inspectAll(c.Context, cfg, certificates)
	v := judge(cfg, result)
	show := printTable
	if c.Bool(jsonFlag) {
		show = printJSON
	}
	if err := show(c.App.Writer, cfg, result, v); err != nil || v.code == 0 {
		return err
	}
	return withCode(v.code, errReported)
}

// inspectAll inspects the masters and the upstream.
func inspectAll(ctx context.Context, cfg conf.Config, certificates *certs.Certificates) inspection {
	loops, unverified := daemon.FindLoops(ctx, cfg, certificates)
	result := inspection{loops: loops, warnings: cfg.Warnings()}
	if unverified != "" {
		result.warnings = append(result.warnings, unverified)
	}
	var wg sync.WaitGroup
	if cfg.Upstream != "" {
		wg.Go(func() { f := inspectUpstream(ctx, cfg, certificates); result.upstream = &f })
	}
	result.masters = inspect.ExamineMasters(ctx, cfg.Masters, daemon.MasterAccess(cfg, certificates), pushConnectionsOf(cfg))
	inspect.SetQuarantines(result.masters, cfg.MaxTTL)
	inspect.CompareSettings(result.masters, daemon.SharedSettings(cfg))
	result.proxies = inspect.CountProxies(result.masters, daemon.SharedSettings(cfg))
	wg.Wait()
	result.changing = inspect.AreChanging(result.masters)
	result.location, result.contradiction = lockLocation(ctx, cfg, certificates, result.masters)
	if result.contradiction != "" { // then no master votes
		for i := range result.masters {
			result.masters[i].Votes, result.masters[i].Marker = false, guard.LocationUnknown.Sentence(1)
		}
	}
	result.findDirectLocks(ctx, cfg, certificates)
	result.compareDatabases(cfg)
	return result
}

// pushConnectionsOf returns the push connections that a proxy opens at its masters.
func pushConnectionsOf(cfg conf.Config) inspect.PushConnections {
	return inspect.PushConnections{ForWaiting: true, ForMessages: cfg.Upstream == "", Prefix: cfg.KeyPrefix}
}

// inspectUpstream inspects the upstream. It first asks the Sentinels for the address, if the
// configuration names Sentinels.
func inspectUpstream(ctx context.Context, cfg conf.Config, certificates *certs.Certificates) inspect.Finding {
	url := cfg.Upstream
	if conf.HasSentinels(url) || cfg.HasCluster() {
		var err error
		if url, err = daemon.LocateUpstream(ctx, cfg, certificates); err != nil {
			s, _, _ := conf.ReadSentinel(cfg.Upstream) // loadConfig has checked it
			return inspect.Finding{Name: cmp.Or(s.Master, "cluster"), Err: err}
		}
	}
	return inspect.ExamineServer(ctx, url, daemon.UpstreamAccess(cfg, certificates))
}

func printTable(out io.Writer, cfg conf.Config, result inspection, v verdict) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MASTER\tVERSION\tROLE\tUPTIME\tROUND TRIP\tPOLICY\tAPPEND-ONLY\tMARKER\tNOTES")
	for _, f := range result.masters {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			f.Name, dashIfEmpty(f.Version), dashIfEmpty(f.Role), durationText(f.Uptime),
			durationText(f.RoundTrip), dashIfEmpty(f.Policy), dashIfEmpty(f.Appendfsync), markerText(f), notesText(f))
	}
	if f := result.upstream; f != nil {
		fmt.Fprintf(table, "%s (upstream)\t%s\t%s\t%s\t%s\t%s\t-\t-\t%s\n",
			f.Name, dashIfEmpty(f.Version), dashIfEmpty(f.Role), durationText(f.Uptime),
			durationText(f.RoundTrip), dashIfEmpty(f.Policy), notesText(*f))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if daemon.CanMove(cfg) {
		fmt.Fprintln(out, "locks:", result.locationText(cfg))
	}
	for _, warning := range result.warnings {
		fmt.Fprintln(out, "warning:", warning)
	}
	_, err := fmt.Fprintf(out, "%v\nnext: %s\n", v, v.nextStep())
	return err
}

// server describes one server in the JSON that check prints.
type server struct {
	Name          string   `json:"name"`
	Error         string   `json:"error,omitempty"`
	Version       string   `json:"version,omitempty"`
	Role          string   `json:"role,omitempty"`
	Policy        string   `json:"maxmemory_policy,omitempty"`
	Appendfsync   string   `json:"appendfsync,omitempty"`
	Uptime        float64  `json:"uptime_seconds,omitempty"`
	RoundTrip     float64  `json:"round_trip_seconds,omitempty"`
	Votes         *bool    `json:"votes,omitempty"`
	Marker        string   `json:"marker,omitempty"`
	MarkerSeconds float64  `json:"marker_seconds,omitempty"`
	ReadyIn       float64  `json:"ready_in_seconds,omitempty"`
	LongestTTL    float64  `json:"longest_ttl_seconds,omitempty"`
	Unsafe        []string `json:"unsafe,omitempty"`
	Disagreements []string `json:"disagreements,omitempty"`
	Weaknesses    []string `json:"weak,omitempty"`
}

func printJSON(out io.Writer, cfg conf.Config, result inspection, v verdict) error {
	document := struct {
		Verdict   string   `json:"verdict"`
		Code      int      `json:"exit_code"`
		Reasons   []string `json:"reasons"`
		Available bool     `json:"available"`
		Cause     string   `json:"cause,omitempty"`
		Masters   []server `json:"masters"`
		Upstream  *server  `json:"upstream,omitempty"`
		LocksAt   string   `json:"locks_at,omitempty"`
		Warnings  []string `json:"warnings,omitempty"`
	}{
		Verdict: verdictNames[v.code], Code: v.code, Reasons: slices.Concat(v.reasons, v.advice),
		Available: v.inputs.Decide().State == availability.Available, Cause: v.inputs.Decide().Cause,
		LocksAt: v.inputs.LockStorage(), Warnings: result.warnings,
	}
	for _, f := range result.masters {
		s := serverOf(f)
		s.Votes, s.Marker, s.MarkerSeconds = &f.Votes, f.Marker, f.QuarantineElapsed.Seconds()
		if f.Quarantine != nil {
			s.ReadyIn = f.Quarantine.TimeLeft().Seconds()
		}
		document.Masters = append(document.Masters, s)
	}
	if result.upstream != nil {
		s := serverOf(*result.upstream)
		document.Upstream = &s
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}

func serverOf(f inspect.Finding) server {
	s := server{
		Name: f.Name, Version: f.Version, Role: f.Role, Policy: f.Policy, Appendfsync: f.Appendfsync,
		Uptime: f.Uptime.Seconds(), RoundTrip: f.RoundTrip.Seconds(), LongestTTL: f.LongestTTL.Seconds(),
		Unsafe: f.SafetyProblems, Disagreements: f.SettingsProblems, Weaknesses: f.Weaknesses,
	}
	if f.Err != nil {
		s.Error = f.Err.Error()
	}
	return s
}

// markerText describes the master's marker. In a quarantine, the text has the duration so far and,
// if known, the remaining time.
func markerText(f inspect.Finding) string {
	text := dashIfEmpty(f.Marker)
	if f.QuarantineElapsed > 0 {
		text += fmt.Sprintf(", for %v", f.QuarantineElapsed.Round(time.Second))
	}
	if q := f.Quarantine; q != nil {
		text += q.ReadyIn()
		if !f.IsInUse() {
			text += " after a proxy has seen it"
		}
	}
	return text
}

func durationText(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.String()
}

func dashIfEmpty(s string) string { return cmp.Or(s, "-") }

func notesText(f inspect.Finding) string {
	if f.Err != nil {
		return strings.Join(append(slices.Clone(f.SafetyProblems), f.Err.Error()), "; ")
	}
	return cmp.Or(strings.Join(slices.Concat(f.SafetyProblems, f.SettingsProblems, f.Weaknesses), "; "), "ok")
}
