package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"redlock-proxy/conf"
	"redlock-proxy/daemon"
	"redlock-proxy/internal/certs"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/inspect"
	"redlock-proxy/quorum/location"
	"redlock-proxy/quorum/master"
)

const (
	longestTTLFlag  = "longest-ttl"
	onceFlag        = "once"
	newSettingsFlag = "new-settings"
	forceFlag       = "force"
	// initTimeout is the least time limit for each reply of a master. An operator can wait longer
	// than a client that waits for a lock.
	initTimeout = 2 * time.Second
	// startTimeout limits the wait for servers that do not listen or reply yet. startPause is the
	// time between two attempts.
	startTimeout = 5 * time.Second
	startPause   = 100 * time.Millisecond
)

func initFlags() []cli.Flag {
	return append(settingFlags(),
		&cli.StringFlag{Name: longestTTLFlag, Usage: "`DURATION`: longest time for which an earlier lock may " +
			"still be held; 0s: no lock is held, or the masters are new; without the flag init asks"},
		&cli.BoolFlag{Name: newSettingsFlag, Usage: "only declare lock-keys, lock-tags, key-prefix, guard and " +
			"masters of this configuration the right ones: proxies with different ones get no votes"},
		&cli.BoolFlag{Name: forceFlag, Usage: "with --longest-ttl: even if a master holds, or a proxy knows of, " +
			"a longer lock; with --new-settings: even while proxies with different settings run"},
		&cli.StringFlag{Name: onceFlag, Usage: "`FILE`: do nothing if the file says that init has run, else create it: " +
			"for a deployment that runs init at every start"},
	)
}

// initAction sets the time for which masters must wait before they vote. The operator gives the
// longest TTL, because masters that lost their data do not know that TTL.
func initAction(c *cli.Context) error {
	cfg, err := loadConfig(c)
	if err != nil {
		return err
	}
	if c.Bool(newSettingsFlag) {
		return newSettingsAction(c, cfg)
	}
	if !cfg.Guard {
		return errors.New("nothing to initialize: with --guard=false all masters vote, even if they have lost locks")
	}
	certificates, err := certs.Load(cfg.CertificateFiles())
	if err != nil {
		return err
	}
	record, end, err := daemon.LocationRecord(cfg, certificates)
	if err != nil {
		return err
	}
	defer end()
	i := initRun{
		cfg: cfg, certs: certificates, record: record,
		in: c.App.Reader, out: c.App.Writer, onceFile: c.String(onceFlag),
	}
	if c.IsSet(longestTTLFlag) {
		if i.ttl, err = parseLongestTTL(c.String(longestTTLFlag), cfg.MaxTTL); err != nil {
			return fmt.Errorf("--%s: %w", longestTTLFlag, err)
		}
		i.ttlGiven = true
	}
	if i.force = c.Bool(forceFlag); i.force && !i.ttlGiven {
		return fmt.Errorf("--%s needs --%s or --%s", forceFlag, longestTTLFlag, newSettingsFlag)
	}
	return i.run(c.Context)
}

// newSettingsAction makes masters vote only for proxies with the settings of this configuration.
func newSettingsAction(c *cli.Context, cfg conf.Config) error {
	for _, other := range []string{longestTTLFlag, onceFlag} {
		if c.IsSet(other) {
			return fmt.Errorf("--%s and --%s exclude each other; run init once with each", newSettingsFlag, other)
		}
	}
	certificates, err := certs.Load(cfg.CertificateFiles())
	if err != nil {
		return err
	}
	results, err := inspect.ReplaceSettings(c.Context, cfg.Masters, initAccess(cfg, certificates), daemon.SharedSettings(cfg),
		c.Bool(forceFlag))
	if err != nil {
		return withCode(exitUnsafe, fmt.Errorf("refused: %w, or use --%s", err, forceFlag))
	}
	allReached := true
	for _, m := range results {
		text := "votes only for proxies with these settings"
		switch {
		case m.Err != nil:
			text, allReached = m.Err.Error(), false
		case m.Difference != "":
			text += " (before: " + m.Difference + ")"
		}
		fmt.Fprintf(c.App.Writer, "%s: %s\n", m.Name, text)
	}
	if !allReached {
		return withCode(exitUnavailable, errors.New(
			"not all masters were reached and changed: the causes are above; run the command again once all masters answer"))
	}
	_, err = fmt.Fprintln(c.App.Writer, "next: restart the proxies that have different settings: redlock-proxy serve")
	return err
}

// parseLongestTTL parses the duration that the operator gives, and refuses a duration above limit.
func parseLongestTTL(text string, limit time.Duration) (time.Duration, error) {
	ttl, err := time.ParseDuration(strings.TrimSpace(text))
	switch {
	case err != nil || ttl < 0:
		return 0, fmt.Errorf(`%q is not a duration (a number and a unit, such as "0s" or "10m")`,
			strings.TrimSpace(text))
	case ttl > limit:
		return 0, fmt.Errorf("%v is longer than max-ttl %v; give at most max-ttl", ttl, limit)
	}
	return ttl, nil
}

// initRun holds the state of one run of init.
type initRun struct {
	cfg   conf.Config
	certs *certs.Certificates
	// record is the upstream's record of the location of the locks, or nil.
	record   location.Record
	in       io.Reader
	out      io.Writer
	onceFile string
	// begun is set if, by the file of --once, an earlier run has begun, but not completed.
	begun    bool
	ttl      time.Duration
	ttlGiven bool
	force    bool
}

func (i *initRun) run(ctx context.Context) error {
	if done, err := i.hasRun(); done || err != nil {
		return err
	}
	findings := i.survey(ctx)
	if err := i.checkLocation(ctx, findings); err != nil {
		return withCode(exitUnsafe, fmt.Errorf("refused: %w", err))
	}
	// If this check fails, it would fail for every answer of the operator, so init does not ask.
	if err := inspect.CheckOverride(findings, i.cfg.MaxTTL, i.force); err != nil {
		return i.refusalError(err)
	}
	if err := i.refuseSecondRun(); err != nil { // at this point, the masters do not vote
		return err
	}
	if err := i.askTTL(findings); err != nil {
		return err
	}
	if err := inspect.CheckOverride(findings, i.ttl, i.force); err != nil {
		return i.refusalError(err)
	}
	// The file is written first, so that init never initializes masters twice.
	if err := i.writeOnceFile(onceBegun); err != nil {
		return err
	}
	masters, err := quorum.StoreOverride(ctx, quorum.Options{
		Masters: i.cfg.Masters, Access: initAccess(i.cfg, i.certs), MaxTTL: i.cfg.MaxTTL,
		Record: i.record, Logger: slog.New(slog.DiscardHandler),
	}, i.ttl, i.force)
	if err != nil {
		return withCode(exitUnavailable, err)
	}
	if err := i.writeOnceFile(onceDone); err != nil {
		return err
	}
	err = i.report(masters)
	if proxies := inspect.ProxiesWithLongerTTL(i.survey(ctx), i.ttl); err != nil && len(proxies) > 0 {
		fmt.Fprintf(i.out, "%s\nnext: if none of these locks is held any more: redlock-proxy init --%s %v --%s\n",
			strings.Join(proxies, "\n"), longestTTLFlag, i.ttl, forceFlag)
	}
	return err
}

// initAccess returns the settings for init's connections to the masters.
func initAccess(cfg conf.Config, certificates *certs.Certificates) master.Access {
	access := daemon.MasterAccess(cfg, certificates)
	access.Timeout = max(access.Timeout, initTimeout)
	return access
}

// survey inspects the masters. It waits a short time for masters that have only just been started.
func (i *initRun) survey(ctx context.Context) []inspect.Finding {
	for until := time.Now().Add(startTimeout); ; {
		findings := inspect.Survey(ctx, i.cfg.Masters, initAccess(i.cfg, i.certs))
		if !slices.ContainsFunc(findings, isStarting) || !time.Now().Before(until) {
			return findings
		}
		if pacing.Sleep(ctx, startPause) != nil {
			return findings
		}
	}
}

// checkLocation returns an error if the masters and the upstream's record do not show the location
// of the locks. It waits a short time for an upstream that has only just been started.
func (i *initRun) checkLocation(ctx context.Context, findings []inspect.Finding) error {
	if i.record == nil {
		return nil
	}
	reported := inspect.ReportedLocation(findings)
	recorded, err := i.record.Read(ctx)
	until := time.Now().Add(startTimeout)
	for err != nil && !reported.Known && time.Now().Before(until) && pacing.Sleep(ctx, startPause) == nil {
		recorded, err = i.record.Read(ctx)
	}
	if _, err = reported.Resolve(i.record, recorded, err, i.cfg.MoveFromUpstream); err != nil {
		return fmt.Errorf("cannot tell where the locks are: %w", err)
	}
	return nil
}

// isStarting reports whether a master may still be starting.
func isStarting(f inspect.Finding) bool {
	if f.Err == nil {
		return false
	}
	text := f.Err.Error()
	return text == "connection refused" || text == "no answer in time" || strings.HasPrefix(text, "LOADING ")
}

// The contents of the file of --once. A file with any other content means that init has run, too.
const (
	onceBegun = "redlock-proxy init has begun\n"
	onceDone  = "redlock-proxy init has run\n"
)

// hasRun reports whether init has already run, by the file of --once. It also sets begun.
func (i *initRun) hasRun() (bool, error) {
	if i.onceFile == "" {
		return false, nil
	}
	content, err := os.ReadFile(i.onceFile)
	switch i.begun = string(content) == onceBegun; {
	case err == nil && i.begun:
		return false, nil
	case err == nil:
		_, err = fmt.Fprintf(i.out, "nothing to do: init has run before (%s exists)\n", i.onceFile)
		return true, err
	case !errors.Is(err, os.ErrNotExist):
		return false, fmt.Errorf("--%s: %w", onceFlag, err)
	}
	return false, nil
}

// refuseSecondRun returns an error if an earlier run has begun but not completed. That run may have
// initialized masters, which may hold locks by now.
func (i *initRun) refuseSecondRun() error {
	if !i.begun {
		return nil
	}
	return withCode(exitUnavailable, fmt.Errorf("an earlier init did not complete: %s says that it has begun; "+
		"run redlock-proxy init without --%s, with the longest time for which a lock may still be held, and then this command again",
		i.onceFile, onceFlag))
}

// writeOnceFile writes the file of --once.
func (i *initRun) writeOnceFile(content string) error {
	if i.onceFile == "" {
		return nil
	}
	if err := os.WriteFile(i.onceFile, []byte(content), 0o644); err != nil {
		return fmt.Errorf("--%s: %w", onceFlag, err)
	}
	return nil
}

// refusalError returns the error for an answer of the operator that init refuses. If the masters
// need no answer, refusalError prints that there is nothing to do, and returns nil.
func (i *initRun) refusalError(err error) error {
	if errors.Is(err, inspect.ErrNotNeeded) {
		if err := i.writeOnceFile(onceDone); err != nil {
			return err
		}
		_, err = fmt.Fprintf(i.out, "nothing to do: %v\n%s\n", err, nextServe)
		return err
	}
	return withCode(exitUnsafe, fmt.Errorf("refused: %w", err))
}

// askTTL asks the operator for the longest TTL, unless the flag gave it.
func (i *initRun) askTTL(findings []inspect.Finding) error {
	if i.ttlGiven {
		return nil
	}
	for _, f := range findings {
		fmt.Fprintf(i.out, "%s: %s\n", f.Name, f.Marker)
	}
	fmt.Fprintf(i.out, "%s\nFor how long may an earlier lock still be held? "+
		"(0s: no lock is held, or the masters are new) ",
		longestTTLSentence(findings))
	line, err := bufio.NewReader(i.in).ReadString('\n')
	if err != nil && line == "" {
		return fmt.Errorf("no answer on standard input; use --%s", longestTTLFlag)
	}
	i.ttl, err = parseLongestTTL(line, i.cfg.MaxTTL)
	return err
}

// longestTTLSentence returns a sentence about the longest TTL in use that the masters know of.
func longestTTLSentence(findings []inspect.Finding) string {
	longest := time.Duration(0)
	for _, f := range findings {
		longest = max(longest, f.LongestTTL)
	}
	if longest == 0 {
		return "The masters know of no lock."
	}
	return fmt.Sprintf("The masters know of locks of up to %v, and wait at least that long.", longest)
}

// report prints, for each master, that it votes, the time until it votes, or the reason why it does
// not vote. It returns an error if too few masters vote, or will vote within maxWait.
func (i *initRun) report(masters []quorum.MasterStatus) error {
	votes, onTime := 0, 0
	for _, m := range masters {
		text := "votes"
		switch q := m.Quarantine; {
		case m.State == quorum.Voting:
			votes++
		case q == nil:
			text = "does not vote: " + m.Cause()
		case q.Differences != "":
			text = "does not vote for proxies with these settings: " + q.Error()
		default:
			text = fmt.Sprintf("will vote once a proxy has been connected for %v: %v", q.TimeLeft().Round(time.Second), q)
			if left := q.TimeLeft(); left > 0 && left <= i.maxWait() && i.maxWait() > quorum.OverrideVoteTime {
				onTime++
			}
		}
		fmt.Fprintf(i.out, "%s: %s\n", m.Name, text)
	}
	fmt.Fprintf(i.out, "%d of %d masters vote\n", votes, len(masters))
	if votes+onTime < quorum.Majority(len(masters)) {
		return withCode(exitUnavailable,
			fmt.Errorf("too few masters vote, or will vote within %v: the causes are above; "+
				"correct them, then run redlock-proxy init again", i.maxWait()))
	}
	_, err := fmt.Fprintln(i.out, nextServe)
	return err
}

// nextServe is the last line that init prints if the masters are initialized.
const nextServe = "next: start the proxies with these settings: redlock-proxy serve; " +
	"redlock-proxy check shows the state of the masters"

// maxWait returns the longest time that a master waits before it votes, for the TTL that the
// operator gave.
func (i *initRun) maxWait() time.Duration { return i.ttl + i.ttl/50 + quorum.FreshStartTime }
