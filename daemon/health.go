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
	"redlock-proxy/proxy/proxyproto"
)

// healthcheckTimeout limits the time that a healthy proxy may take to answer.
const healthcheckTimeout = 2 * time.Second

// ConnectAddress returns the address at which a client on this machine reaches a listen address.
func ConnectAddress(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// Health holds the reply of a proxy: the fields of PROXY HEALTH, or an error reply.
type Health struct {
	fields  map[string]string
	refusal string
}

// AskHealth asks a proxy for its health. Any reply shows that the proxy is alive, even the error
// that it has too many clients, or that it requires a certificate. If this machine is one of the
// balancers, AskHealth first sends a LOCAL header of the PROXY protocol, which marks the connection
// as its own.
func AskHealth(addr string, balancers []netip.Prefix, tlsConfig *tls.Config) (Health, error) {
	conn, err := net.DialTimeout("tcp", addr, healthcheckTimeout)
	if err != nil {
		return Health{}, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(healthcheckTimeout))
	if proxyproto.IsIn(balancers, conn.LocalAddr()) {
		if _, err := io.WriteString(conn, proxyproto.LocalHeader); err != nil {
			return Health{}, err
		}
	}
	if tlsConfig != nil {
		conn = tls.Client(conn, tlsConfig)
	}
	_, writeErr := conn.Write([]byte("PROXY HEALTH\r\n"))
	answer, err := readHealth(bufio.NewReader(conn))
	var opErr *net.OpError
	var headerErr tls.RecordHeaderError
	switch {
	case errors.As(err, &headerErr) && string(headerErr.RecordHeader[:]) == "-ERR ":
		// The proxy refused the connection before the handshake.
		return Health{refusal: "max-clients is reached"}, nil
	case errors.As(err, &opErr) && opErr.Op == "remote error":
		return Health{refusal: opErr.Err.Error()}, nil
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
	if err != nil || size < 0 || size > maxHealthReply || head[0] != '$' {
		return Health{}, fmt.Errorf("the server is not a redlock-proxy: it answered %q", head)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(in, text); err != nil {
		return Health{}, err
	}
	return Health{fields: redisinfo.Parse(string(text))}, nil // PROXY HEALTH has the INFO format
}

// maxHealthReply limits the reply to PROXY HEALTH, in bytes. Real replies are shorter.
const maxHealthReply = 4096

// CheckReady returns the reason why no new client gets a lock at the proxy, or nil.
func (h Health) CheckReady() error {
	switch {
	case h.refusal != "":
		return errors.New(h.refusal)
	case h.fields["ready"] != "yes":
		return errors.New(h.fields["cause"])
	default:
		return nil
	}
}
