package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"redlock-proxy/certs"
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
	for _, warning := range cfg.Warnings() {
		log.Warn(warning)
	}
	alive := func(addr string) error {
		_, err := askHealth(reachable(addr), cfg.Balancers(), certs.Probing(certificateFiles(cfg)))
		return err
	}
	return supervised(c.Context, log, alive, func(ready func(net.Addr)) error {
		return serve(c.Context, cfg, log, hangups, ready)
	})
}

// configIsFine says so, with what is probably not meant, unless a file of certificates is broken.
func configIsFine(cfg conf.Config, out io.Writer) error {
	certificates, err := certs.Load(certificateFiles(cfg))
	if err != nil {
		return err
	}
	warnings := cfg.Warnings()
	if err := certificates.Untimely(time.Now()); err != nil {
		warnings = append(warnings, err.Error())
	}
	for _, warning := range warnings {
		fmt.Fprintln(out, "warning:", warning)
	}
	_, err = fmt.Fprintln(out, "the configuration is valid")
	return err
}
