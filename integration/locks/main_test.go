//go:build integration

package locks

import (
	"testing"

	"redlock-proxy/integration/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }
