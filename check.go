package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"redlock-proxy/conf"
	"redlock-proxy/quorum"
)

// errUnsafe ends check when locks would not be safe or not be had.
var errUnsafe = errors.New("it would not be safe to serve")

// checkAction connects to every master and prints what it found.
func checkAction(c *cli.Context) error {
	cfg, err := load(c)
	if err != nil {
		return err
	}
	return check(c.Context, cfg, c.App.Writer)
}

func check(ctx context.Context, cfg conf.Config, out io.Writer) error {
	findings := quorum.Inspect(ctx, cfg.Masters, cfg.MasterTimeout)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MASTER\tVERSION\tROLE\tUPTIME\tROUND TRIP\tPOLICY\tAPPEND-ONLY\tMARKER\tVERDICT")
	for _, f := range findings {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, dash(f.Version), dash(f.Role), uptime(f),
			roundTrip(f), dash(f.Policy), dash(f.Appendfsync), marker(f), verdict(f))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, warning := range cfg.Warnings() {
		fmt.Fprintln(out, "warning:", warning)
	}
	if why := reasons(findings); len(why) > 0 {
		return fmt.Errorf("%w: %s", errUnsafe, strings.Join(why, "; "))
	}
	return nil
}

// reasons sums up why it is not safe.
func reasons(findings []quorum.Finding) []string {
	var all []string
	answered, needed := 0, quorum.Majority(len(findings))
	for _, f := range findings {
		if f.Err == nil {
			answered++
		}
		for _, why := range f.Unsafe {
			all = append(all, f.Name+": "+why)
		}
	}
	if answered < needed {
		all = append(all, fmt.Sprintf("%d of %d masters answered, %d needed", answered, len(findings), needed))
	}
	return all
}

func uptime(f quorum.Finding) string {
	if f.Uptime == 0 {
		return "-"
	}
	return f.Uptime.String()
}

// marker tells what proxies think of the master, and for how long it has been in quarantine.
func marker(f quorum.Finding) string {
	if f.Since == 0 {
		return dash(f.Marker)
	}
	return fmt.Sprintf("%s, for %v", f.Marker, f.Since.Round(time.Second))
}

func roundTrip(f quorum.Finding) string {
	if f.RoundTrip == 0 {
		return "-"
	}
	return f.RoundTrip.String()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func verdict(f quorum.Finding) string {
	if f.Err != nil {
		return f.Err.Error()
	}
	notes := append(append([]string{}, f.Unsafe...), f.Weak...)
	if len(notes) == 0 {
		return "ok"
	}
	return strings.Join(notes, "; ")
}
