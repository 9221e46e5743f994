//go:build integration

package lockkeys

import (
	"testing"

	"redlock-proxy/integration/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }
