package daemon

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"redlock-proxy/conf"
)

// TestUnitDescriptors checks that LimitNOFILE of the systemd unit is enough for the default
// max-clients, with nine masters and an upstream.
func TestUnitDescriptors(t *testing.T) {
	unit, err := os.ReadFile("../deploy/systemd/redlock-proxy.service")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^LimitNOFILE=(\d+)$`).FindSubmatch(unit)
	if line == nil {
		t.Fatal("the unit has no LimitNOFILE")
	}
	limit, err := strconv.ParseUint(string(line[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	cfg := conf.Default()
	cfg.Masters, cfg.Upstream = make([]string, 9), "redis://upstream"
	if clients, err := fitClients(cfg, limit); err != nil || clients != cfg.MaxClients {
		t.Errorf("with %d descriptors there is room for %d clients, %v, want %d", limit, clients, err, cfg.MaxClients)
	}
}
