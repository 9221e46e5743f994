package process

import (
	"testing"
	"time"
)

// waitLimit is how long a test waits for an expected event; silence is how long it checks that an
// event does not happen.
const (
	waitLimit = 5 * time.Second
	quietTime = 50 * time.Millisecond
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
