package main

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"redlock-proxy/conf"
)

// healthcheckTimeout is how long a healthy proxy may take to answer.
const healthcheckTimeout = 2 * time.Second

// healthcheckAction asks the proxy that listens where this configuration says.
func healthcheckAction(c *cli.Context) error {
	cfg, err := conf.Read(source(c))
	if err != nil {
		return err
	}
	if err := ping(reachable(cfg.Listen)); err != nil {
		return fmt.Errorf("unhealthy: %w", err)
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

func ping(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, healthcheckTimeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(healthcheckTimeout))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if answer = strings.TrimSpace(answer); !alive(answer) {
		return fmt.Errorf("%s answered %q", addr, answer)
	}
	return nil
}

// alive reports whether a proxy in order answers that. The check has no password, so it
// does not get past the login that an upstream may demand of every client.
func alive(answer string) bool {
	return answer == "+PONG" || strings.HasPrefix(answer, "-NOAUTH ")
}
