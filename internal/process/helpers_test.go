package process

import (
	"testing"
	"time"
)

// waitLimit limits the wait of a test for an expected event; quietTime is the time for which a test
// checks that an event does not happen.
const (
	waitLimit = time.Minute
	quietTime = 50 * time.Millisecond
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
