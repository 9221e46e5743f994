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

// checkConfigFlag has serve only read its configuration.
const checkConfigFlag = "check-config"

func serveFlags() []cli.Flag {
	return append(settingFlags(), &cli.BoolFlag{Name: checkConfigFlag, Usage: "read the configuration, report what is wrong with it, and end; it connects to nothing"})
}

func serveAction(c *cli.Context) error {
	hangups := make(chan os.Signal, 1) // from now on SIGHUP does not end the process
	signal.Notify(hangups, syscall.SIGHUP)
	cfg, err := load(c)
	if err != nil {
		return err
	}
	if c.Bool(checkConfigFlag) {
		return configIsFine(cfg, c.App.Writer)
	}
	signal.Ignore(syscall.SIGPIPE) // a log that nobody reads any more is no reason to end
	logs, err := daemon.NewLogs(c.App.ErrWriter, cfg)
	if err != nil {
		return err
	}
	defer logs.Close()
	log := logs.Logger()
	daemon.WarnOf(log, cfg.Warnings())
	return daemon.Serve(c.Context, daemon.Options{
		Config: cfg, Version: c.App.Version, Log: log, Logs: logs, Read: func() (conf.Config, error) { return load(c) }, Hangups: hangups,
	})
}

// configIsFine says so, with what is probably not meant, unless a file of certificates is broken.
func configIsFine(cfg conf.Config, out io.Writer) error {
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
		warnings = append(warnings, daemon.OpenUsers)
	}
	if err := certificates.Untimely(time.Now()); err != nil {
		warnings = append(warnings, err.Error())
	}
	for _, warning := range warnings {
		fmt.Fprintln(out, "warning:", warning)
	}
	_, err = fmt.Fprintln(out, "the configuration is valid")
	return err
}
