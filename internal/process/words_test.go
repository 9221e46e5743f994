package process

import (
	"testing"
	"time"
)

// waitLimit is how long a test waits for what must come; silence is how long it watches for what
// must not.
const (
	waitLimit = 5 * time.Second
	silence   = 50 * time.Millisecond
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
