//go:build integration

package versions

import (
	"testing"

	"redlock-proxy/integration/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }
