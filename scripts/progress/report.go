package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// event is a line of go test -json, as test2json has it. Output of the compiler has an
// import path instead of a package.
type event struct {
	Action, Package, ImportPath, Test, Output, FailedBuild string
	Elapsed                                                float64
}

// name is the package and the test, without what all packages here begin with.
func (e event) name() string {
	pkg := strings.TrimPrefix(strings.TrimPrefix(e.Package, "redlock-proxy"), "/")
	if pkg == "" {
		pkg = "."
	}
	if e.Test == "" {
		return pkg
	}
	return pkg + " " + e.Test
}

// report tells of events as they come.
type report struct {
	out   io.Writer
	quiet bool
	// output is that of tests and packages that have not ended, by name.
	output         map[string][]string
	passed, missed int
	failures       []string
	// What took longest, so that growth is seen.
	packages, tests slowest
}

func newReport(out io.Writer, quiet bool) *report {
	return &report{out: out, quiet: quiet, output: map[string][]string{}}
}

// read takes all lines. What is no event, the runtime's last words above all, is passed on.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &e) == nil && e.Action != "":
			r.take(e)
		default:
			_, _ = r.out.Write(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) take(e event) {
	r.clock(e)
	switch e.Action {
	case "output":
		r.output[e.name()] = append(r.output[e.name()], e.Output)
		if e.Test != "" { // should the package end in its midst
			r.output[e.Package+"\x00"] = append(r.output[e.Package+"\x00"], e.Output)
		}
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "build-fail":
		r.failures = append(r.failures, e.ImportPath+" (does not build)")
	case "pass", "skip":
		r.ended(e)
	case "fail":
		r.fell(e)
	}
}

// clock remembers what took long.
func (r *report) clock(e event) {
	switch one := (timed{e.name(), e.Elapsed}); {
	case e.Action != "pass" && e.Action != "fail":
	case e.Test == "":
		r.packages.add(one, slowPackages)
	default:
		r.tests.add(one, slowTests)
	}
}

// ended tells of a test or package that has passed or was skipped.
func (r *report) ended(e event) {
	output := r.output[e.name()]
	delete(r.output, e.name())
	switch {
	case e.Test == "":
		delete(r.output, e.Package+"\x00")
		if e.Action == "pass" {
			fmt.Fprintf(r.out, "ok    %-60s %7.1fs\n", e.name(), e.Elapsed)
		}
	case e.Action == "skip":
		r.missed++
		fmt.Fprintf(r.out, "skip  %s\n%s", e.name(), notes(output))
	case !strings.Contains(e.Test, "/"):
		r.passed++
		r.tell(e)
	}
}

// tell is the line of a test that passed.
func (r *report) tell(e event) {
	if !r.quiet {
		fmt.Fprintf(r.out, "pass  %-60s %7.1fs  (%d passed, %d failed)\n", e.name(), e.Elapsed, r.passed, len(r.failures))
	}
}

// fell tells of a test or package that has failed, with what it said. A package whose
// tests are told already adds nothing, unless it ended before they did.
func (r *report) fell(e event) {
	name := e.name()
	if e.Test == "" {
		r.packageFell(e)
		return
	}
	said := strings.Join(r.output[name], "")
	fmt.Fprintf(r.out, "FAIL  %s (%.1fs)\n%s", name, e.Elapsed, said)
	delete(r.output, name)
	if wrongAnswer.MatchString(said) {
		name += " (a wrong answer)"
	}
	r.failures = append(r.failures, name)
}

// wrongAnswer is in the output of a test that has not only waited in vain: scripts/again
// does not run such a one once more.
var wrongAnswer = regexp.MustCompile(`DATA RACE|panic|fatal error|OVERLAP|DOUBLE|LOST|REVIVED|granted twice|was granted to|[1-9][0-9]* violations|came back|differ`)

func (r *report) packageFell(e event) {
	name := e.name()
	told := slices.ContainsFunc(r.failures, func(f string) bool { return strings.HasPrefix(f, name+" ") })
	switch {
	case e.FailedBuild != "":
		told = true
		fmt.Fprintf(r.out, "FAIL  %s does not build\n", name)
	case told:
		fmt.Fprintf(r.out, "FAIL  %s (%.1fs)\n", name, e.Elapsed)
	default:
		said := slices.Concat(r.output[e.Package+"\x00"], r.output[name])
		fmt.Fprintf(r.out, "FAIL  %s (%.1fs)\n%s", name, e.Elapsed, strings.Join(said, ""))
		r.failures = append(r.failures, name+" (ended before its tests did)")
	}
	delete(r.output, name)
	delete(r.output, e.Package+"\x00")
}

// notes are what a test itself has said of why it was skipped.
func notes(output []string) string {
	var said strings.Builder
	for _, line := range output {
		if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "===") && !strings.HasPrefix(trimmed, "---") {
			said.WriteString("      " + trimmed + "\n")
		}
	}
	return said.String()
}

// failed are the tests and packages that failed, in their order; of subtests and the test
// that they are in, only the subtests.
func (r *report) failed() []string {
	var all []string
	for _, f := range r.failures {
		within := func(other string) bool { return strings.HasPrefix(other, f+"/") }
		if !slices.ContainsFunc(r.failures, within) && !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	return all
}

// close tells what took longest, the sum, and what failed.
func (r *report) close(failed []string) {
	r.packages.tell(r.out, "packages")
	r.tests.tell(r.out, "tests")
	fmt.Fprintf(r.out, "\n%d tests passed, %d were skipped, %d failed\n", r.passed, r.missed, len(failed))
	for _, f := range failed {
		fmt.Fprintf(r.out, "  FAILED  %s\n", f)
	}
}
