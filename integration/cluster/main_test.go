//go:build integration

package cluster

import (
	"testing"

	"redlock-proxy/integration/kit"
)

func TestMain(m *testing.M) { kit.MainParallel(m, 2) }
