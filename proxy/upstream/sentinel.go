package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"redlock-proxy/internal/resp"
)

// Sentinels describes the Sentinels that report the upstream's address.
type Sentinels struct {
	// MasterName is the name by which the Sentinels know the master.
	MasterName string
	// Addrs holds the addresses (host:port) of the Sentinels, at least one.
	Addrs []string
	// Username and Password are the login for all Sentinels, or empty.
	Username, Password string
}

// masterReport holds a Sentinel's reply about the master. The report with the latest epoch is
// valid, because each failover has its own epoch.
type masterReport struct {
	addr  string
	epoch uint64
}

var (
	errUnknownMaster  = errors.New("unknown master name")
	errInvalidAddress = errors.New("its answer is not an address")
	errAskPending     = errors.New("no answer in time")
)

// sentinel holds a Sentinel's address, and the connection that the proxy keeps open to it.
type sentinel struct {
	addr string

	mu     sync.Mutex
	conn   net.Conn // nil if not connected
	closed bool
}

// ask asks the Sentinel for the master. It fails if the reply to an earlier question is pending.
func (s *sentinel) ask(ctx context.Context, u *Upstream) (masterReport, error) {
	if !s.mu.TryLock() {
		return masterReport{}, errAskPending
	}
	defer s.mu.Unlock()
	hadConn := s.conn != nil
	report, broken, err := s.askOnce(ctx, u)
	if broken && hadConn && ctx.Err() == nil { // the kept connection may have ended long ago
		report, _, err = s.askOnce(ctx, u)
	}
	return report, err
}

// askOnce asks on one connection. broken is set if that connection broke. The caller must hold mu.
func (s *sentinel) askOnce(ctx context.Context, u *Upstream) (report masterReport, broken bool, err error) {
	if s.closed {
		return masterReport{}, false, net.ErrClosed
	}
	if s.conn == nil {
		if s.conn, err = u.dialSentinel(ctx, s.addr); err != nil {
			s.conn = nil
			return masterReport{}, false, err
		}
	}
	conn := s.conn
	stop := context.AfterFunc(ctx, func() { closeImmediately(conn) })
	defer stop()
	answer, err := u.exchange(conn, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", u.discovery.MasterName)
	var details []byte
	if err == nil {
		details, err = u.exchange(conn, "SENTINEL", "MASTER", u.discovery.MasterName)
	}
	if err != nil {
		closeImmediately(conn)
		s.conn = nil
		return masterReport{}, true, err
	}
	report, err = parseMasterReport(answer, details)
	return report, false, err
}

// dialSentinel connects to a Sentinel and logs in.
func (u *Upstream) dialSentinel(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := u.dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	login := loginWords(u.discovery.Username, u.discovery.Password)
	if login == nil {
		return conn, nil
	}
	stop := context.AfterFunc(ctx, func() { closeImmediately(conn) })
	defer stop()
	answer, err := u.exchange(conn, login...)
	if err == nil && !resp.HasPrefix(answer, "+OK") {
		err = errors.New("AUTH: " + resp.FirstLine(answer))
	}
	if err != nil {
		closeImmediately(conn)
		return nil, err
	}
	return conn, nil
}

// close waits until no reply is pending, and closes the connection.
func (s *sentinel) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed = true; s.conn != nil {
		closeImmediately(s.conn)
	}
	s.conn = nil
}

// parseMasterReport parses the replies to SENTINEL GET-MASTER-ADDR-BY-NAME and SENTINEL MASTER. If
// the Sentinel refuses the second command, the epoch is 0.
func parseMasterReport(answer, details []byte) (masterReport, error) {
	switch {
	case resp.HasPrefix(answer, "-"):
		return masterReport{}, errors.New(resp.FirstLine(answer))
	case resp.HasPrefix(answer, "*-1"), resp.HasPrefix(answer, "$-1"), resp.HasPrefix(answer, "_"):
		return masterReport{}, errUnknownMaster
	}
	hostPort := resp.Texts(answer)
	if !resp.HasPrefix(answer, "*2\r\n") || len(hostPort) != 2 || !isAddress(hostPort[0], hostPort[1]) {
		return masterReport{}, errInvalidAddress
	}
	epoch, _ := valueAfter(resp.Texts(details), "config-epoch")
	n, _ := strconv.ParseUint(epoch, 10, 64) // 0 if there is no epoch
	return masterReport{net.JoinHostPort(hostPort[0], hostPort[1]), n}, nil
}

// hostText matches a host that is safe to log.
var hostText = regexp.MustCompile(`^[A-Za-z0-9._:%-]{1,255}$`)

func isAddress(host, port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0 && hostText.MatchString(host)
}

// chooseReport returns the report of the latest epoch. If reports of that epoch differ, it prefers
// the most frequent report, then the known address. Without reports it returns the zero value.
func chooseReport(reports []masterReport, knownAddr string) (best masterReport) {
	votes := map[masterReport]int{}
	for _, o := range reports {
		votes[o]++
	}
	for _, o := range reports {
		switch {
		case best.addr == "" || o.epoch > best.epoch:
			best = o
		case o.epoch < best.epoch || votes[o] < votes[best]:
		case votes[o] > votes[best] || o.addr == knownAddr:
			best = o
		}
	}
	return best
}

// majorityReport returns the report of more than half of the configured Sentinels, or the zero
// value.
func majorityReport(all []masterReport, sentinels int) masterReport {
	votes := map[masterReport]int{}
	for _, o := range all {
		if votes[o]++; votes[o] > sentinels/2 {
			return o
		}
	}
	return masterReport{}
}

// loginWords returns the AUTH command of a login; nil if both user name and password are empty.
func loginWords(username, password string) []string {
	switch {
	case username != "":
		return []string{"AUTH", username, password}
	case password != "":
		return []string{"AUTH", password}
	}
	return nil
}

// noSentinelError returns the error that no Sentinel reports the master.
func noSentinelError(master string, failures []string) error {
	return fmt.Errorf("no Sentinel returned the address of %s: %s", master, strings.Join(failures, "; "))
}

// closeImmediately ends a connection immediately. Closing TLS would wait until the peer reads a
// notification.
func closeImmediately(conn net.Conn) {
	if tlsConn, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = tlsConn.NetConn()
	}
	_ = conn.Close()
}

// valueAfter returns the text that follows the first text equal to name.
func valueAfter(texts []string, name string) (next string, found bool) {
	for i, text := range texts {
		if text == name && i+1 < len(texts) {
			return texts[i+1], true
		}
	}
	return "", false
}
