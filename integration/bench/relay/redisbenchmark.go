package relay

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// errNoBenchmark means that redis-benchmark is not installed.
var errNoBenchmark = errors.New("redis-benchmark is not installed: apt-get install redis-tools")

// benchmarkTimeout limits one redis-benchmark, which does not end by itself if its server has
// ended.
const benchmarkTimeout = 5 * time.Minute

// figure holds the figures that redis-benchmark prints for one test.
type figure struct {
	rate     float64 // requests per second
	p50, p99 float64 // milliseconds
}

// runRedisBenchmark runs one test, and returns its figures and the CPU time of the redis-benchmark
// process. It fails at the first error reply.
func runRedisBenchmark(
	ctx context.Context, addr string, c scenario, clients, requests int,
) (figure, time.Duration, error) {
	program, err := exec.LookPath("redis-benchmark")
	if err != nil {
		return figure{}, 0, errNoBenchmark
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return figure{}, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, benchmarkTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-h", host, "-p", port, "-t", strings.ToLower(c.test), "--csv",
		"-c", strconv.Itoa(clients), "-n", strconv.Itoa(requests))
	cmd.Args = append(cmd.Args, strings.Fields(c.options())...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return figure{}, 0, fmt.Errorf("%v: %w: %s%s", cmd.Args, errors.Join(err, context.Cause(ctx)), &stdout, &stderr)
	}
	got, err := parseFigure(stdout.String(), c.test)
	return got, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), err
}

// The columns of redis-benchmark --csv that parseFigure needs.
const (
	columnRate = "rps"
	columnP50  = "p50_latency_ms"
	columnP99  = "p99_latency_ms"
)

// parseFigure returns the figures of a test from the output of redis-benchmark.
func parseFigure(text, test string) (figure, error) {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(lines) < 2 {
		return figure{}, fmt.Errorf("redis-benchmark printed %q: no CSV of a header and figures: %w", text, err)
	}
	for _, line := range lines[1:] {
		if line[0] == test {
			return figureOf(lines[0], line)
		}
	}
	return figure{}, fmt.Errorf("redis-benchmark printed %q: no figures for %s", text, test)
}

// figureOf parses a line whose columns have the names in the header.
func figureOf(header, line []string) (f figure, err error) {
	numbers := map[string]float64{}
	for i, name := range header[1:] {
		if numbers[name], err = strconv.ParseFloat(line[i+1], 64); err != nil {
			return f, fmt.Errorf("redis-benchmark's column %s: %w", name, err)
		}
	}
	f = figure{rate: numbers[columnRate], p50: numbers[columnP50], p99: numbers[columnP99]}
	if f.rate <= 0 {
		return f, fmt.Errorf("redis-benchmark tells no %s in %v", columnRate, header)
	}
	return f, nil
}
