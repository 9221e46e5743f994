package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"redlock-proxy/conf"
)

// checkConfigFlag has serve only read its configuration.
const checkConfigFlag = "check-config"

func serveFlags() []cli.Flag {
	return append(settingFlags(), &cli.BoolFlag{Name: checkConfigFlag, Usage: "read the configuration, tell what is wrong with it, and end; nothing is connected to"})
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
	log, err := newLogger(c.App.ErrWriter, cfg)
	if err != nil {
		return err
	}
	defer ignoreHangups(hangups, log)()
	for _, warning := range cfg.Warnings() {
		log.Warn(warning)
	}
	return supervised(c.Context, log, func(ready func(net.Addr)) error {
		return serve(c.Context, cfg, log, ready)
	})
}

// configIsFine says so, with what is probably not meant.
func configIsFine(cfg conf.Config, out io.Writer) error {
	for _, warning := range cfg.Warnings() {
		fmt.Fprintln(out, "warning:", warning)
	}
	_, err := fmt.Fprintln(out, "the configuration is valid")
	return err
}

// ignoreHangups logs each SIGHUP until stop is called. Many daemons read their settings
// again then; this one does not yet, and must not die of it.
func ignoreHangups(hangups chan os.Signal, log *slog.Logger) (stop func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range hangups {
			log.Warn("SIGHUP is ignored: settings are read when the proxy starts, so restart it to change them")
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(hangups)
		<-ended
	}
}
