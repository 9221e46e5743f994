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

// Sentinels are servers that say where the upstream is.
type Sentinels struct {
	// Master is the name by which they know it.
	Master string
	// Addrs are theirs, host:port, at least one.
	Addrs []string
	// Username and Password are the login at all of them, or empty.
	Username, Password string
}

// opinion is where a Sentinel says that the master is. The one of the latest epoch is right: each
// failover has one of its own.
type opinion struct {
	addr  string
	epoch uint64
}

var (
	errUnknownMaster = errors.New("it knows no master of that name")
	errOddAddress    = errors.New("its answer is no address")
	errStillAsked    = errors.New("no answer in time")
)

// sentinel is one of them, and the connection that is kept to it.
type sentinel struct {
	addr string

	mu     sync.Mutex
	conn   net.Conn // nil: none
	closed bool
}

// ask asks it where the master is. Of a question that still waits for its answer the next one is
// not put beside it.
func (s *sentinel) ask(ctx context.Context, u *Upstream) (opinion, error) {
	if !s.mu.TryLock() {
		return opinion{}, errStillAsked
	}
	defer s.mu.Unlock()
	kept := s.conn != nil
	said, broken, err := s.askOnce(ctx, u)
	if broken && kept && ctx.Err() == nil { // the connection may have ended long ago
		said, _, err = s.askOnce(ctx, u)
	}
	return said, err
}

// askOnce is ask on one connection; broken: it ended on the way. It is called with mu held.
func (s *sentinel) askOnce(ctx context.Context, u *Upstream) (said opinion, broken bool, err error) {
	if s.closed {
		return opinion{}, false, net.ErrClosed
	}
	if s.conn == nil {
		if s.conn, err = u.dialSentinel(ctx, s.addr); err != nil {
			s.conn = nil
			return opinion{}, false, err
		}
	}
	conn := s.conn
	stop := context.AfterFunc(ctx, func() { sever(conn) })
	defer stop()
	answer, err := u.exchange(conn, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", u.following.Master)
	var about []byte
	if err == nil {
		about, err = u.exchange(conn, "SENTINEL", "MASTER", u.following.Master)
	}
	if err != nil {
		sever(conn)
		s.conn = nil
		return opinion{}, true, err
	}
	said, err = readOpinion(answer, about)
	return said, false, err
}

// dialSentinel connects to a Sentinel, and logs in.
func (u *Upstream) dialSentinel(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := u.dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	login := loginWords(u.following.Username, u.following.Password)
	if login == nil {
		return conn, nil
	}
	stop := context.AfterFunc(ctx, func() { sever(conn) })
	defer stop()
	answer, err := u.exchange(conn, login...)
	if err == nil && !resp.Begins(answer, "+OK") {
		err = errors.New("AUTH: " + resp.FirstLine(answer))
	}
	if err != nil {
		sever(conn)
		return nil, err
	}
	return conn, nil
}

// close ends the connection, also where a question waits on it.
func (s *sentinel) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed = true; s.conn != nil {
		sever(s.conn)
	}
	s.conn = nil
}

// readOpinion reads the answers of SENTINEL GET-MASTER-ADDR-BY-NAME and SENTINEL MASTER. Of a
// Sentinel that refuses the second the epoch is 0.
func readOpinion(answer, about []byte) (opinion, error) {
	switch {
	case resp.Begins(answer, "-"):
		return opinion{}, errors.New(resp.FirstLine(answer))
	case resp.Begins(answer, "*-1"), resp.Begins(answer, "$-1"), resp.Begins(answer, "_"):
		return opinion{}, errUnknownMaster
	}
	place := resp.Texts(answer)
	if !resp.Begins(answer, "*2\r\n") || len(place) != 2 || !isPlace(place[0], place[1]) {
		return opinion{}, errOddAddress
	}
	epoch, _ := after(resp.Texts(about), "config-epoch")
	n, _ := strconv.ParseUint(epoch, 10, 64) // 0 where there is none
	return opinion{net.JoinHostPort(place[0], place[1]), n}, nil
}

// hostText is a host as it may stand in a log.
var hostText = regexp.MustCompile(`^[A-Za-z0-9._:%-]{1,255}$`)

func isPlace(host, port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0 && hostText.MatchString(host)
}

// choose finds the right one of some opinions: the latest, and where Sentinels differ within an
// epoch, what most of them say, and then what is known already. Without any it is the zero value.
func choose(all []opinion, known string) (best opinion) {
	votes := map[opinion]int{}
	for _, o := range all {
		votes[o]++
	}
	for _, o := range all {
		switch {
		case best.addr == "" || o.epoch > best.epoch:
			best = o
		case o.epoch < best.epoch || votes[o] < votes[best]:
		case votes[o] > votes[best] || o.addr == known:
			best = o
		}
	}
	return best
}

// majority is the opinion of most of so many Sentinels, or the zero value.
func majority(all []opinion, sentinels int) opinion {
	votes := map[opinion]int{}
	for _, o := range all {
		if votes[o]++; votes[o] > sentinels/2 {
			return o
		}
	}
	return opinion{}
}

// loginWords is the AUTH of a user; nil where there is none.
func loginWords(username, password string) []string {
	switch {
	case username != "":
		return []string{"AUTH", username, password}
	case password != "":
		return []string{"AUTH", password}
	}
	return nil
}

// noSentinel is the error where none of them says where the master is.
func noSentinel(master string, failures []string) error {
	return fmt.Errorf("no Sentinel knows where %s is (%s)", master, strings.Join(failures, "; "))
}

// sever ends a connection at once. TLS would say farewell, and wait until that is taken.
func sever(conn net.Conn) {
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = over.NetConn()
	}
	_ = conn.Close()
}
