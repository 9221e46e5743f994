//go:build integration

package lockkeys

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/holdings"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	movedKeys      = 3
	clientsPerKey  = 6
	grantsPerStage = 20 // of each client
	movingLease    = time.Second
)

// TestMigration: clients that lock a single Redis by SET NX PX and a release script are moved to two proxies while they work. At no
// time do two of them hold the same lock.
func TestMigration(t *testing.T) {
	m := startMigration(t, rand.Uint64())
	legacy := []string{"--legacy-lock", m.old.URL()}

	m.stage(t, "all at the old Redis")

	first, second := m.startProxy(t, legacy...), m.startProxy(t, legacy...)
	m.move(func(number int) bool { return number%4 == 0 }, first.Addr())
	m.move(func(number int) bool { return number%4 == 2 }, second.Addr())
	m.stage(t, "half of them behind proxies with --legacy-lock")

	m.move(func(number int) bool { return number%4 == 1 }, first.Addr())
	m.move(func(number int) bool { return number%4 == 3 }, second.Addr())
	m.stage(t, "all behind proxies with --legacy-lock")

	m.restart(t, first)
	m.stage(t, "the first proxy without --legacy-lock")
	m.restart(t, second)
	m.stage(t, "both proxies without --legacy-lock")

	m.stop(t)
	if found := m.overlaps(); len(found) > 0 {
		t.Errorf("%d OVERLAPS, such as: %v", len(found), found[0])
	}
}

// TestMigrationWithoutLegacyLock: half of the clients behind proxies that do not ask the old Redis is an accident, and it is found.
func TestMigrationWithoutLegacyLock(t *testing.T) {
	m := startMigration(t, rand.Uint64())
	m.move(func(number int) bool { return number%2 == 0 }, m.startProxy(t).Addr())
	m.stage(t, "half of them behind a proxy without --legacy-lock")
	m.stop(t)
	if len(m.overlaps()) == 0 {
		t.Error("no overlap was found: TestMigration shows nothing")
	}
}

// migration is clients of a single Redis on their way to proxies.
type migration struct {
	old     *redistest.Server
	masters []*redistest.Server
	clients []*movingClient
	locks   [movedKeys]*holdings.History
	over    chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	replies map[string]int // since the stage began
	grants  map[string]int // by client, likewise
}

func startMigration(t *testing.T, seed uint64) *migration {
	t.Helper()
	m := &migration{old: kit.StartRedis(t), masters: kit.StartMasters(t), over: make(chan struct{}), replies: map[string]int{}, grants: map[string]int{}}
	for key := range m.locks {
		m.locks[key] = holdings.NewHistory()
		for range clientsPerKey {
			number := len(m.clients)
			c := &movingClient{migration: m, name: strconv.Itoa(number), key: key, random: rand.New(rand.NewPCG(seed, uint64(number)))}
			c.goal.Store(m.old.Addr())
			m.clients = append(m.clients, c)
			m.running.Go(c.run)
		}
	}
	return m
}

func (m *migration) startProxy(t *testing.T, args ...string) *harness.Proxy {
	t.Helper()
	return kit.StartProxy(t, redistest.URLs(m.masters), append(kit.LockKeyArgs(m.old), args...)...)
}

// restart ends a proxy as an operator would, and starts one without --legacy-lock at its address.
func (m *migration) restart(t *testing.T, proxy *harness.Proxy) {
	t.Helper()
	kit.Must(t, proxy.Signal(syscall.SIGTERM))
	_, err := proxy.Wait(kit.Patience)
	kit.Must(t, err)
	m.startProxy(t, "--listen", proxy.Addr())
}

// move tells the chosen clients where to go on after their turn.
func (m *migration) move(chosen func(number int) bool, addr string) {
	for i, c := range m.clients {
		if chosen(i) {
			c.goal.Store(addr)
		}
	}
}

// stage waits until all who move have arrived, and until each client was granted its lock so many times after that.
func (m *migration) stage(t *testing.T, name string) {
	t.Helper()
	began := time.Now()
	kit.Await(t, name+": all have arrived", func() bool {
		for _, c := range m.clients {
			if c.at.Load() != c.goal.Load() {
				return false
			}
		}
		return true
	})
	m.mu.Lock()
	clear(m.grants)
	m.mu.Unlock()
	kit.Await(t, name+": each was granted its lock often", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, c := range m.clients {
			if m.grants[c.name] < grantsPerStage {
				return false
			}
		}
		return true
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	t.Logf("%s: %v, %v", name, time.Since(began).Round(time.Millisecond), m.replies)
	clear(m.replies)
}

// stop ends the clients, and wants no reply that tells of anything but a proxy that was restarted.
func (m *migration) stop(t *testing.T) {
	t.Helper()
	close(m.over)
	m.running.Wait()
	for _, c := range m.clients {
		if c.wrong != "" {
			t.Errorf("client %s: %s", c.name, c.wrong)
		}
	}
}

func (m *migration) overlaps() []holdings.Overlap {
	var all []holdings.Overlap
	for _, lock := range m.locks {
		all = append(all, lock.Overlaps()...)
	}
	return all
}

// movingClient locks one key again and again, wherever it has been moved to.
type movingClient struct {
	migration *migration
	name      string
	key       int
	random    *rand.Rand
	goal, at  atomic.Value // addresses: where it is to be, and where it is
	client    *redistest.Client
	wrong     string
}

func (c *movingClient) run() {
	defer c.leave()
	for turn := 0; ; turn++ {
		select {
		case <-c.migration.over:
			return
		default:
		}
		if c.at.Load() != c.goal.Load() {
			c.leave()
		}
		if c.client == nil && !c.arrive() {
			time.Sleep(5 * time.Millisecond) // its proxy is being restarted
			continue
		}
		c.turn(c.name + "-" + strconv.Itoa(turn))
		time.Sleep(time.Duration(c.random.Int64N(int64(3 * time.Millisecond))))
	}
}

// leave closes the connection, if there is one.
func (c *movingClient) leave() {
	if c.client != nil {
		_ = c.client.Close()
		c.client = nil
	}
}

// arrive connects to where the client is to be.
func (c *movingClient) arrive() bool {
	addr := c.goal.Load()
	client, err := redistest.Dial(addr.(string), kit.Patience)
	if err != nil {
		return false
	}
	c.client = client
	c.at.Store(addr)
	return true
}

// turn asks for the lock once, and when it has it holds it for a moment and gives it back.
func (c *movingClient) turn(token string) {
	lock, name := c.migration.locks[c.key], fmt.Sprintf("lock:moved:%d", c.key)
	sent := lock.Now()
	if c.ask("SET", name, token, "NX", "PX", kit.Millis(movingLease)) != "OK" {
		return
	}
	received := lock.Now()
	time.Sleep(time.Duration(c.random.Int64N(int64(time.Millisecond))))
	lock.Add(holdings.Relied(token, received, sent+movingLease-movingLease/100, lock.Now()))
	c.migration.mu.Lock()
	c.migration.grants[c.name]++
	c.migration.mu.Unlock()
	c.ask("EVAL", releaseIfOwn, "1", name, token)
}

// ask sends a command; a client whose connection fails or is refused something is without one afterwards.
func (c *movingClient) ask(command ...string) any {
	reply, err := c.client.Do(command...)
	kind := fmt.Sprintf("%s → %v", command[0], reply)
	if failure, bad := reply.(redistest.RespError); bad {
		c.wrong, kind = string(failure), command[0]+" → "+kit.FirstWord(string(failure))
	}
	if err != nil {
		kind = command[0] + ": no reply"
		c.leave()
	}
	c.migration.mu.Lock()
	defer c.migration.mu.Unlock()
	c.migration.replies[kind]++
	return reply
}
