package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestSlowest: what took longest is told at the end, the longest first, and no more of it than is read.
func TestSlowest(t *testing.T) {
	var out bytes.Buffer
	r := newReport(io.Discard, true)
	for i := range 30 {
		r.take(event{Action: "pass", Package: "p", Test: fmt.Sprintf("Test%d", i), Elapsed: float64(i)})
	}
	r.take(event{Action: "fail", Package: "p", Test: "TestWaits", Elapsed: 60})
	r.take(event{Action: "pass", Package: "p", Test: "TestWaits/inner", Elapsed: 59})
	r.take(event{Action: "fail", Package: "p", Elapsed: 500})
	r.take(event{Action: "pass", Package: "quick", Elapsed: 0.1})
	r.out = &out
	r.close(nil)
	told := out.String()
	want := []string{"the slowest packages", "500.0s  p\n", "the slowest tests", "60.0s  p TestWaits\n", "59.0s  p TestWaits/inner\n", "29.0s  p Test29\n", "22.0s  p Test22\n", "tests passed"}
	for _, part := range want {
		_, after, found := strings.Cut(told, part)
		if !found {
			t.Fatalf("%q is missing, or stands too early, in\n%s", part, &out)
		}
		told = after
	}
	for _, no := range []string{"Test21", "quick"} {
		if strings.Contains(out.String(), no) {
			t.Errorf("%s is told in\n%s", no, &out)
		}
	}
}

// TestNothingSlow: where nothing took long, nothing is listed.
func TestNothingSlow(t *testing.T) {
	var out bytes.Buffer
	r := newReport(&out, true)
	r.take(event{Action: "pass", Package: "p", Test: "TestBrief", Elapsed: slowTime - 0.1})
	r.close(nil)
	if strings.Contains(out.String(), "slowest") {
		t.Errorf("it printed\n%s", &out)
	}
}
