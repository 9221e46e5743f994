//go:build integration

package moving

import (
	"testing"

	"redlock-proxy/integration/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }
