//go:build integration

package guard

import (
	"flag"
	"testing"

	"redlock-proxy/integration/kit"
)

// waiting is how many of the tests that mostly wait run at a time.
const waiting = "4"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", waiting); err != nil {
		panic(err)
	}
	kit.Main(m)
}
