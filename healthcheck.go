package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"redlock-proxy/certs"
	"redlock-proxy/conf"
	"redlock-proxy/proxy/origin"
)

// healthcheckTimeout is how long a healthy proxy may take to answer.
const healthcheckTimeout = 2 * time.Second

// readyFlag has healthcheck ask whether locks can be had.
const readyFlag = "ready"

func healthFlags() []cli.Flag {
	return append(settingFlags(), &cli.BoolFlag{Name: readyFlag, Usage: "ask whether locks can be had (a majority of the masters votes), not whether the process lives"})
}

// healthcheckAction asks the proxy that listens where this configuration says: whether it
// lives or, with --ready, whether locks can be had. Neither depends on the upstream.
func healthcheckAction(c *cli.Context) error {
	cfg, err := conf.Read(source(c))
	if err != nil {
		return err
	}
	answer, err := askHealth(reachable(cfg.Listen), cfg.Balancers(), certs.Probing(certificateFiles(cfg)))
	switch {
	case err != nil:
		return fmt.Errorf("unhealthy: %w", err)
	case !c.Bool(readyFlag):
		return nil
	}
	if err := answer.ready(); err != nil {
		return coded(exitNoQuorum, fmt.Errorf("not ready: %w", err))
	}
	return nil
}

// reachable turns an address to listen on into one to connect to.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// health is what a proxy answered: the lines of PROXY HEALTH by their names, or an error.
type health struct {
	lines   map[string]string
	refusal string
}

// askHealth gets an answer from a proxy, whatever it is: it lives then. One that has as many
// clients as it may have says so, and lives as well, like one that wants another certificate.
// Where the proxy takes this machine for a balancer, it is told that it is not one now.
func askHealth(addr string, balancers []netip.Prefix, secure *tls.Config) (health, error) {
	conn, err := net.DialTimeout("tcp", addr, healthcheckTimeout)
	if err != nil {
		return health{}, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(healthcheckTimeout))
	if origin.Among(balancers, conn.LocalAddr()) {
		if _, err := io.WriteString(conn, origin.Local); err != nil {
			return health{}, err
		}
	}
	if secure != nil {
		conn = tls.Client(conn, secure)
	}
	_, writeErr := conn.Write([]byte("PROXY HEALTH\r\n"))
	answer, err := readHealth(bufio.NewReader(conn))
	var said *net.OpError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &plain) && string(plain.RecordHeader[:]) == "-ERR ": // it has no room even for a handshake
		return health{refusal: "it has as many clients as max-clients allows"}, nil
	case errors.As(err, &said) && said.Op == "remote error":
		return health{refusal: said.Err.Error()}, nil
	case err != nil:
		return health{}, errors.Join(writeErr, err)
	}
	return answer, nil
}

// readHealth reads one reply.
func readHealth(in *bufio.Reader) (health, error) {
	head, err := in.ReadString('\n')
	if err != nil {
		return health{}, err
	}
	head = strings.TrimSpace(head)
	if refusal, refused := strings.CutPrefix(head, "-"); refused {
		return health{refusal: refusal}, nil
	}
	size, err := strconv.Atoi(strings.TrimPrefix(head, "$"))
	if err != nil || size < 0 || size > maxHealth || head[0] != '$' {
		return health{}, fmt.Errorf("it answered %q, as no redlock-proxy does", head)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(in, text); err != nil {
		return health{}, err
	}
	answer := health{lines: map[string]string{}}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		answer.lines[name] = value
	}
	return answer, nil
}

// maxHealth is more than PROXY HEALTH ever answers, in bytes.
const maxHealth = 4096

// ready says why no new client gets a lock there, or nil.
func (h health) ready() error {
	switch {
	case h.refusal != "":
		return errors.New(h.refusal)
	case h.lines["ready"] != "yes":
		return errors.New(h.lines["cause"])
	default:
		return nil
	}
}
