package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"redlock-proxy/conf"
	"redlock-proxy/daemon"
	"redlock-proxy/internal/certs"
)

// checkConfigFlag makes serve only check its configuration.
const checkConfigFlag = "check-config"

func serveFlags() []cli.Flag {
	return append(settingFlags(), &cli.BoolFlag{
		Name: checkConfigFlag, Usage: "check the configuration, print errors and warnings, and exit without " +
			"connecting to any server",
	})
}

func serveAction(c *cli.Context) error {
	hangups := make(chan os.Signal, 1) // from now on SIGHUP does not end the process
	signal.Notify(hangups, syscall.SIGHUP)
	cfg, err := loadConfig(c)
	if err != nil {
		return err
	}
	if c.Bool(checkConfigFlag) {
		return reportConfig(cfg, c.App.Writer)
	}
	signal.Ignore(syscall.SIGPIPE) // a closed log must not end the process
	logs, err := daemon.NewLogs(c.App.ErrWriter, cfg)
	if err != nil {
		return err
	}
	defer logs.Close()
	log := logs.Logger()
	daemon.LogWarnings(log, cfg.Warnings())
	return daemon.Serve(c.Context, daemon.Options{
		Config: cfg, Version: c.App.Version, Log: log, Logs: logs,
		Read: func() (conf.Config, error) { return loadConfig(c) }, Hangups: hangups,
	})
}

// reportConfig prints the warnings of a valid configuration. It returns an error if a certificate
// file or the ACL file is broken.
func reportConfig(cfg conf.Config, out io.Writer) error {
	certificates, err := certs.Load(cfg.CertificateFiles())
	if err != nil {
		return err
	}
	warnings := cfg.Warnings()
	own, err := daemon.LoadUsers(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if own != nil && own.IsOpen() {
		warnings = append(warnings, daemon.OpenUsersWarning)
	}
	if err := certificates.ValidityError(time.Now()); err != nil {
		warnings = append(warnings, err.Error())
	}
	for _, warning := range warnings {
		fmt.Fprintln(out, "warning:", warning)
	}
	_, err = fmt.Fprintln(out, "the configuration is valid")
	return err
}
