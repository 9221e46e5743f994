//go:build integration

package relay

import (
	"testing"

	"redlock-proxy/integration/kit"
)

func TestMain(m *testing.M) { kit.MainParallel(m, 4) }
