//go:build integration

package locks

import (
	"fmt"
	"os"
	"testing"

	"redlock-proxy/integration/kit"
)

func TestMain(m *testing.M) {
	if target := os.Getenv(holderEnv); target != "" {
		fmt.Println(holdUntilKilled(target))
		return
	}
	kit.Main(m)
}
