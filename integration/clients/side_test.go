//go:build integration

package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// lockService is a server with which lock libraries are tested: a single Redis, or the proxy with
// five masters and an upstream. For both servers, the transcripts of all operations and results
// must be equal.
type lockService struct {
	t          *testing.T
	addr       string              // the address to which the clients connect
	dataServer *redistest.Server   // the server with ordinary keys and channels
	masters    []*redistest.Server // nil for the single Redis
	a, b       *driver             // two clients
	reader     *redistest.Client   // sends the test's own commands to the clients' address
	transcript []string
	// refusalOutputs holds the program's output for each kind of lock when another client holds the
	// lock.
	refusalOutputs map[string]string
}

// startRedisService starts one Redis and two clients for it.
func startRedisService(t *testing.T, command []string) *lockService {
	t.Helper()
	server := kit.StartRedis(t)
	return startLockService(t, server.Addr(), server, nil, command)
}

// startLockKeyService starts a proxy that keeps the keys lock:* and phpredis' session locks on five
// masters, and two clients for the proxy.
func startLockKeyService(t *testing.T, command []string) *lockService {
	t.Helper()
	return startProxyService(t, command, "--lock-keys", "lock:*", "--lock-keys", "PHPREDIS_SESSION:*_LOCK")
}

// startProxyService starts five masters, a proxy with the given settings, and two clients for the
// proxy.
func startProxyService(t *testing.T, command []string, settings ...string) *lockService {
	t.Helper()
	upstream, masters := kit.StartRedis(t), kit.StartMasters(t)
	// With two of five masters dead, a third master must not look dead on a busy machine.
	args := append(settings, "--upstream", upstream.URL(),
		"--master-timeout", "5s")
	proxy := kit.StartProxy(t, redistest.URLs(masters), args...)
	return startLockService(t, proxy.Addr(), upstream, masters, command)
}

func startLockService(t *testing.T, addr string, data *redistest.Server, masters []*redistest.Server, command []string) *lockService {
	t.Helper()
	raw, err := redistest.Dial(addr, driverTimeout)
	kit.Must(t, err)
	t.Cleanup(func() { _ = raw.Close() })
	return &lockService{
		t: t, addr: addr, dataServer: data, masters: masters, reader: raw, refusalOutputs: map[string]string{},
		a: startDriver(t, addr, "a", command...), b: startDriver(t, addr, "b", command...),
	}
}

// note adds a line to the transcript.
func (s *lockService) note(format string, args ...any) {
	s.transcript = append(s.transcript, fmt.Sprintf(format, args...))
}

// run lets a client execute one operation, and returns the result.
func (s *lockService) run(client *driver, d dialect, operation, key string, args ...string) string {
	s.t.Helper()
	request := append([]string{d.name, operation, key}, args...)
	reply, err := client.ask(request...)
	kit.Must(s.t, err)
	s.note("%s: %s: %s", client.name, strings.Join(request, " "), reply)
	return reply
}

// wantGrant fails the test unless the lock is granted.
func (s *lockService) wantGrant(client *driver, d dialect, key string, ttl time.Duration) {
	s.t.Helper()
	if got := s.run(client, d, "take", key, kit.Millis(ttl)); got != d.grantOutput {
		s.t.Errorf("%s: %s takes %s: got %s, want %s", d.name, client.name, key, got, d.grantOutput)
	}
}

// wantRefusal fails the test if the lock is granted.
func (s *lockService) wantRefusal(client *driver, d dialect, key string) {
	s.t.Helper()
	got := s.run(client, d, "take", key, kit.Millis(longLease))
	if got == d.grantOutput {
		s.t.Errorf("%s: %s was granted %s, which another holds", d.name, client.name, key)
	}
	s.refusalOutputs[d.kind(key)] = got
}

// wantGrantSoon repeats a request until the lock is granted. The transcript does not contain the
// number of attempts, which depends on the machine.
func (s *lockService) wantGrantSoon(client *driver, d dialect, key string, ttl time.Duration) {
	s.t.Helper()
	var got string
	for deadline := time.Now().Add(kit.WaitLimit); time.Now().Before(deadline); time.Sleep(holdTime) {
		var err error
		got, err = client.ask(d.name, "take", key, kit.Millis(ttl))
		kit.Must(s.t, err)
		if got == d.grantOutput {
			s.note("%s: %s take %s: granted in the end", client.name, d.name, key)
			return
		}
	}
	s.t.Fatalf("%s: %s is never granted %s: %s", d.name, client.name, key, got)
}

// wantUnchanged fails the test if otherCommands changes the values of the lock's keys.
func (s *lockService) wantUnchanged(d dialect, key string, otherCommands func()) {
	s.t.Helper()
	before := s.values(d, key)
	otherCommands()
	if after := s.values(d, key); !slices.Equal(before, after) {
		s.t.Errorf("%s: %s was %q, and is %q after what another client did", d.name, key, before, after)
	}
}

// wantRemaining fails the test unless the remaining time of a lock is above low and at most high.
func (s *lockService) wantRemaining(d dialect, key string, low, high time.Duration) {
	s.t.Helper()
	for _, name := range d.keyNames(key) {
		ms, ok := kit.Do(s.t, s.reader, "PTTL", name).(int64)
		remaining := time.Duration(ms) * time.Millisecond
		s.note("PTTL %s in (%v..%v]: %t", name, low, high, ok && remaining > low && remaining <= high)
		if !ok || remaining <= low || remaining > high {
			s.t.Errorf("PTTL %s: got %v, want it in (%v..%v]", name, remaining, low, high)
		}
	}
}

// notePTTL records the PTTL of a lock that never expires.
func (s *lockService) notePTTL(key string) {
	s.t.Helper()
	s.note("PTTL %s: %v", key, kit.Do(s.t, s.reader, "PTTL", key))
}

// wantOnMasters fails the test unless a majority of the masters hold a granted lock, and the
// upstream does not have the lock.
func (s *lockService) wantOnMasters(d dialect, key string) {
	s.t.Helper()
	if s.masters == nil {
		return
	}
	for _, name := range d.keyNames(key) {
		if err := kit.CheckAbsent(s.dataServer, name); err != nil {
			s.t.Errorf("on the upstream: %v", err)
		}
		kit.AwaitShortly(s.t, func() error { return checkMajority(s.masters, name) })
	}
}

// checkMajority returns an error unless at least three of five masters have a key. Up to two of the
// masters may be dead.
func checkMajority(masters []*redistest.Server, key string) error {
	var votes int
	for _, master := range masters {
		if value, _, err := kit.ReadKey(master, key); err == nil && value != nil {
			votes++
		}
	}
	if votes < 3 {
		return fmt.Errorf("%s is on %d of %d masters", key, votes, len(masters))
	}
	return nil
}

// values returns the values of a lock's keys.
func (s *lockService) values(d dialect, key string) []string {
	s.t.Helper()
	var values []string
	for _, name := range d.keyNames(key) {
		values = append(values, fmt.Sprintf("%#v", s.value(name)))
	}
	return values
}

// value returns the value of a string, the fields of a hash, or the members of a sorted set.
func (s *lockService) value(key string) any {
	s.t.Helper()
	switch kit.Do(s.t, s.reader, "TYPE", key) {
	case "hash":
		return kit.Do(s.t, s.reader, "HGETALL", key)
	case "zset":
		return kit.Do(s.t, s.reader, "ZRANGE", key, "0", "-1")
	}
	return kit.Do(s.t, s.reader, "GET", key)
}

// checkBlocked returns an error unless a client of a server is blocked in a BLPOP.
func checkBlocked(server *redistest.Server) error {
	client, err := redistest.Dial(server.Addr(), kit.WaitLimit)
	if err != nil {
		return err
	}
	defer client.Close()
	list, err := client.Do("CLIENT", "LIST")
	if text, _ := list.(string); err == nil && !strings.Contains(text, " cmd=blpop ") {
		err = fmt.Errorf("no client waits in a BLPOP on %s", server.Addr())
	}
	return err
}

// killMinority kills two masters. It does nothing for the single Redis.
func (s *lockService) killMinority() error { return s.eachMinorityMaster((*redistest.Server).Kill) }

// restartMinority restarts the killed masters without their data.
func (s *lockService) restartMinority() error {
	return s.eachMinorityMaster((*redistest.Server).Restart)
}

func (s *lockService) eachMinorityMaster(action func(*redistest.Server) error) error {
	if s.masters == nil {
		return nil
	}
	for _, master := range s.masters[:2] { // always the same two: three masters keep their data
		if err := action(master); err != nil {
			return err
		}
	}
	return nil
}
