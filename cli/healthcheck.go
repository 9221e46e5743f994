package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"redlock-proxy/conf"
	"redlock-proxy/daemon"
	"redlock-proxy/internal/certs"
)

// readyFlag makes healthcheck ask whether locks are available.
const readyFlag = "ready"

func healthFlags() []cli.Flag {
	return append(settingFlags(), &cli.BoolFlag{
		Name: readyFlag, Usage: "ask whether locks are available, not only whether the process is alive",
	})
}

// healthcheckAction asks the proxy at the listen address of this configuration whether it is alive
// or, with --ready, whether locks are available.
func healthcheckAction(c *cli.Context) error {
	cfg, err := conf.Read(settingsSource(c))
	if err != nil {
		return err
	}
	answer, err := daemon.AskHealth(daemon.ConnectAddress(cfg.Listen), cfg.Balancers(),
		certs.ProbeConfig(cfg.CertificateFiles()))
	switch {
	case err != nil:
		return fmt.Errorf("unhealthy: %w", err)
	case !c.Bool(readyFlag):
		return nil
	}
	if err := answer.CheckReady(); err != nil {
		return withCode(exitUnavailable, fmt.Errorf("not ready: %w", err))
	}
	return nil
}
