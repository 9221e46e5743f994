//go:build integration

package operate

import (
	"testing"

	"redlock-proxy/integration/kit"
)

func TestMain(m *testing.M) { kit.MainParallel(m, 4) }
