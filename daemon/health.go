package daemon

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

	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/proxy/origin"
)

// healthcheckTimeout is how long a healthy proxy may take to answer.
const healthcheckTimeout = 2 * time.Second

// Reachable turns an address to listen on into one to connect to.
func Reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// Health is what a proxy answered: the lines of PROXY HEALTH by their names, or an error.
type Health struct {
	lines   map[string]string
	refusal string
}

// AskHealth gets an answer from a proxy, whatever it is: it lives then. One that has as many
// clients as it may have says so, and lives as well, like one that wants another certificate.
// Where the proxy takes this machine for a balancer, it is notified that it is not one now.
func AskHealth(addr string, balancers []netip.Prefix, secure *tls.Config) (Health, error) {
	conn, err := net.DialTimeout("tcp", addr, healthcheckTimeout)
	if err != nil {
		return Health{}, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(healthcheckTimeout))
	if origin.Among(balancers, conn.LocalAddr()) {
		if _, err := io.WriteString(conn, origin.Local); err != nil {
			return Health{}, err
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
		return Health{refusal: "it has as many clients as max-clients allows"}, nil
	case errors.As(err, &said) && said.Op == "remote error":
		return Health{refusal: said.Err.Error()}, nil
	case err != nil:
		return Health{}, errors.Join(writeErr, err)
	}
	return answer, nil
}

// readHealth reads one reply.
func readHealth(in *bufio.Reader) (Health, error) {
	head, err := in.ReadString('\n')
	if err != nil {
		return Health{}, err
	}
	head = strings.TrimSpace(head)
	if refusal, refused := strings.CutPrefix(head, "-"); refused {
		return Health{refusal: refusal}, nil
	}
	size, err := strconv.Atoi(strings.TrimPrefix(head, "$"))
	if err != nil || size < 0 || size > maxHealth || head[0] != '$' {
		return Health{}, fmt.Errorf("it answered %q, as no redlock-proxy does", head)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(in, text); err != nil {
		return Health{}, err
	}
	return Health{lines: redisinfo.Parse(string(text))}, nil // it has the form of INFO
}

// maxHealth is more than PROXY HEALTH ever answers, in bytes.
const maxHealth = 4096

// Ready says why no new client gets a lock there, or nil.
func (h Health) Ready() error {
	switch {
	case h.refusal != "":
		return errors.New(h.refusal)
	case h.lines["ready"] != "yes":
		return errors.New(h.lines["cause"])
	default:
		return nil
	}
}
