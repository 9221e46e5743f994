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
	"redlock-proxy/quorum/place"
)

const (
	longestFlag = "longest-ttl"
	onceFlag    = "once"
	newFlag     = "new-settings"
	forceFlag   = "force"
	// initTimeout is how long a master may take for each answer, at the least: unlike a client
	// that waits for a lock, an operator has the time.
	initTimeout = 2 * time.Second
	// startTime is for how long masters that do not listen or answer yet are waited for, and
	// startPause the time between two looks.
	startTime  = 5 * time.Second
	startPause = 100 * time.Millisecond
)

func initFlags() []cli.Flag {
	return append(settingFlags(),
		&cli.StringFlag{Name: longestFlag, Usage: "`DURATION`: longest time for which a lock from before may still be held; 0s: none is, or the masters are new; without the flag init asks"},
		&cli.BoolFlag{Name: newFlag, Usage: "only declare this configuration's lock-keys, lock-tags, key-prefix, guard and masters the right ones: proxies with different ones get no votes"},
		&cli.BoolFlag{Name: forceFlag, Usage: "with --longest-ttl: even if a master holds, or a proxy knows of, a longer lock; with --new-settings: even while proxies with different settings run"},
		&cli.StringFlag{Name: onceFlag, Usage: "`FILE`: do nothing if the file exists, else create it: for a deployment that runs init at every start"},
	)
}

// initAction takes an operator's word on masters that cannot tell for how long to wait.
func initAction(c *cli.Context) error {
	cfg, err := load(c)
	if err != nil {
		return err
	}
	if c.Bool(newFlag) {
		return imposeAction(c, cfg)
	}
	if !cfg.Guard {
		return errors.New("guard: false has all masters vote, whatever they forgot: there is nothing to do")
	}
	certificates, err := certs.Load(cfg.CertificateFiles())
	if err != nil {
		return err
	}
	record, end, err := daemon.Record(cfg, certificates)
	if err != nil {
		return err
	}
	defer end()
	i := initialisation{cfg: cfg, certs: certificates, record: record, in: c.App.Reader, out: c.App.Writer, once: c.String(onceFlag)}
	if c.IsSet(longestFlag) {
		if i.ttl, err = longestOf(c.String(longestFlag), cfg.MaxTTL); err != nil {
			return fmt.Errorf("--%s: %w", longestFlag, err)
		}
		i.said = true
	}
	if i.force = c.Bool(forceFlag); i.force && !i.said {
		return fmt.Errorf("--%s goes with --%s or --%s", forceFlag, longestFlag, newFlag)
	}
	return i.run(c.Context)
}

// imposeAction takes an operator's word on which settings are right, where proxies have different
// ones.
func imposeAction(c *cli.Context, cfg conf.Config) error {
	certificates, err := certs.Load(cfg.CertificateFiles())
	if err != nil {
		return err
	}
	done, err := inspect.Impose(c.Context, cfg.Masters, max(cfg.MasterTimeout, initTimeout), certificates.Dialing, daemon.Rules(cfg), c.Bool(forceFlag))
	if err != nil {
		return coded(exitUnsafe, fmt.Errorf("refused: %w, or say --%s", err, forceFlag))
	}
	told := true
	for _, m := range done {
		text := "votes for proxies with these settings alone"
		switch {
		case m.Err != nil:
			text, told = m.Err.Error(), false
		case m.Differed != "":
			text += " (" + m.Differed + ", before)"
		}
		fmt.Fprintf(c.App.Writer, "%s: %s\n", m.Name, text)
	}
	if !told {
		return coded(exitUnavailable, errors.New("not all masters were reached: see above for why, and run it again"))
	}
	return nil
}

// longestOf reads what the operator says.
func longestOf(text string, limit time.Duration) (time.Duration, error) {
	ttl, err := time.ParseDuration(strings.TrimSpace(text))
	switch {
	case err != nil || ttl < 0:
		return 0, fmt.Errorf(`%q is not a duration (a number and a unit, such as "0s" or "10m")`, strings.TrimSpace(text))
	case ttl > limit:
		return 0, fmt.Errorf("%v is longer than max-ttl %v, which is waited for anyway", ttl, limit)
	}
	return ttl, nil
}

// initialisation is one run of init.
type initialisation struct {
	cfg   conf.Config
	certs *certs.Certificates
	// record is what the upstream keeps of where the locks are, or nil.
	record place.Record
	in     io.Reader
	out    io.Writer
	once   string
	ttl    time.Duration
	said   bool // ttl was given
	force  bool
}

func (i *initialisation) run(ctx context.Context) error {
	if done, err := i.wasDone(); done || err != nil {
		return err
	}
	patience := max(i.cfg.MasterTimeout, initTimeout)
	findings := i.survey(ctx, patience)
	if err := i.compare(ctx, findings); err != nil {
		return coded(exitUnsafe, fmt.Errorf("refused: %w", err))
	}
	if err := inspect.MayVouch(findings, i.cfg.MaxTTL, i.force); err != nil { // no answer would do
		return i.refuse(err)
	}
	if err := i.ask(findings); err != nil {
		return err
	}
	if err := inspect.MayVouch(findings, i.ttl, i.force); err != nil {
		return i.refuse(err)
	}
	if err := i.note(); err != nil { // before: then it is never done twice
		return err
	}
	masters, err := quorum.Vouch(ctx, quorum.Options{
		Masters: i.cfg.Masters, TLS: i.certs.Dialing, MasterTimeout: patience, MaxTTL: i.cfg.MaxTTL, Record: i.record, Logger: slog.New(slog.DiscardHandler),
	}, i.ttl, i.force)
	if err != nil {
		return coded(exitUnavailable, err)
	}
	err = i.report(masters)
	if known := inspect.Knowing(i.survey(ctx, patience), i.ttl); err != nil && len(known) > 0 {
		fmt.Fprintf(i.out, "%s\nif none of these is held any more: redlock-proxy init --%s %v --%s\n", strings.Join(known, "\n"), longestFlag, i.ttl, forceFlag)
	}
	return err
}

// survey looks at the masters. It waits a while for those that were only just started.
func (i *initialisation) survey(ctx context.Context, patience time.Duration) []inspect.Finding {
	for until := time.Now().Add(startTime); ; {
		findings := inspect.Survey(ctx, i.cfg.Masters, patience, i.certs.Dialing)
		if !slices.ContainsFunc(findings, isStarting) || !time.Now().Before(until) {
			return findings
		}
		if pacing.Sleep(ctx, startPause) != nil {
			return findings
		}
	}
}

// compare is why it cannot be known where the locks are, or nil. It waits a while for an upstream
// that was only just started.
func (i *initialisation) compare(ctx context.Context, findings []inspect.Finding) error {
	if i.record == nil {
		return nil
	}
	said := inspect.PlacedOn(findings)
	has, err := i.record.Read(ctx)
	for until := time.Now().Add(startTime); err != nil && !said.Known && time.Now().Before(until) && pacing.Sleep(ctx, startPause) == nil; {
		has, err = i.record.Read(ctx)
	}
	if _, err = said.Settle(i.record, has, err, i.cfg.MoveFromUpstream); err != nil {
		return fmt.Errorf("where the locks are is not known: %w", err)
	}
	return nil
}

// isStarting reports whether a master may only just be starting, perhaps beside others on a machine
// that is busy with that.
func isStarting(f inspect.Finding) bool {
	if f.Err == nil {
		return false
	}
	text := f.Err.Error()
	return text == "connection refused" || text == "no answer in time" || strings.HasPrefix(text, "LOADING ")
}

// wasDone reports whether the file of --once is there.
func (i *initialisation) wasDone() (bool, error) {
	if i.once == "" {
		return false, nil
	}
	switch _, err := os.Stat(i.once); {
	case err == nil:
		_, err = fmt.Fprintf(i.out, "nothing to do: it was done before, says %s\n", i.once)
		return true, err
	case !errors.Is(err, os.ErrNotExist):
		return false, fmt.Errorf("--%s: %w", onceFlag, err)
	}
	return false, nil
}

// note makes the file of --once.
func (i *initialisation) note() error {
	if i.once == "" {
		return nil
	}
	if err := os.WriteFile(i.once, []byte("redlock-proxy init has run\n"), 0o644); err != nil {
		return fmt.Errorf("--%s: %w", onceFlag, err)
	}
	return nil
}

// refuse says why the operator's word is not taken, or not needed.
func (i *initialisation) refuse(err error) error {
	if errors.Is(err, inspect.ErrNotNeeded) {
		if err := i.note(); err != nil {
			return err
		}
		_, err = fmt.Fprintln(i.out, "nothing to do:", err)
		return err
	}
	return coded(exitUnsafe, fmt.Errorf("refused: %w", err))
}

// ask has the operator say what nobody else knows, unless the flag did.
func (i *initialisation) ask(findings []inspect.Finding) error {
	if i.said {
		return nil
	}
	for _, f := range findings {
		fmt.Fprintf(i.out, "%s: %s\n", f.Name, f.Marker)
	}
	fmt.Fprintf(i.out, "%s\nFor how long may a lock that was taken here before still be held? (0s: none is, or the masters are new) ", knownLongest(findings))
	line, err := bufio.NewReader(i.in).ReadString('\n')
	if err != nil && line == "" {
		return fmt.Errorf("no answer: say it with --%s", longestFlag)
	}
	i.ttl, err = longestOf(line, i.cfg.MaxTTL)
	return err
}

// knownLongest is what the masters know of the longest TTL in use.
func knownLongest(findings []inspect.Finding) string {
	longest := time.Duration(0)
	for _, f := range findings {
		longest = max(longest, f.LongestTTL)
	}
	if longest == 0 {
		return "The masters know of no lock."
	}
	return fmt.Sprintf("The masters know of locks of up to %v: so long it takes at least.", longest)
}

// report says which masters vote, which will and why not yet. It is an error if too few do for what
// was said.
func (i *initialisation) report(masters []quorum.MasterStatus) error {
	votes, onTime := 0, 0
	for _, m := range masters {
		text := "votes"
		switch q := m.Quarantine; {
		case m.Standing == quorum.Voting:
			votes++
		case q == nil:
			text = "does not vote: " + m.Cause()
		case q.Differs != "":
			text = "does not vote here: " + q.Error()
		default:
			text = fmt.Sprintf("will vote once a proxy has been connected for %v: %v", q.Left().Round(time.Second), q)
			if left := q.Left(); left > 0 && left <= i.wait() && i.wait() > quorum.VouchVotes {
				onTime++
			}
		}
		fmt.Fprintf(i.out, "%s: %s\n", m.Name, text)
	}
	fmt.Fprintf(i.out, "%d of %d masters vote\n", votes, len(masters))
	if votes+onTime < quorum.Majority(len(masters)) {
		return coded(exitUnavailable, fmt.Errorf("too few masters vote for locks of up to %v: see above for why", i.ttl))
	}
	return nil
}

// wait is how long a master waits at the most by what the operator said.
func (i *initialisation) wait() time.Duration { return i.ttl + i.ttl/50 + quorum.FreshStartTime }
