//go:build integration

package relay

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/integration/clients"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestGoRedisShares: clients of go-redis with nothing but its defaults (HELLO 3, CLIENT SETINFO, and what else its version sends)
// are told the same as without the proxy, and all of them use two connections to the upstream.
func TestGoRedisShares(t *testing.T) {
	redistest.SkipShort(t)
	r := startSharing(t)
	const conns = 20
	r.alike(t, func(addr string) (told string) {
		pool := redis.NewClient(&redis.Options{Addr: addr, PoolSize: conns})
		for who := range conns {
			conn := pool.Conn()
			told += toldToGoRedis(t.Context(), conn, who)
			kit.Must(t, conn.FlushDB(t.Context()).Err())
		}
		if addr == r.proxy.Addr() {
			t.Run("two connections", func(t *testing.T) {
				redistest.Needs(t, "resp= in CLIENT LIST", "7.0")
				r.want(t, "upstream_shared_db0_resp3", conns, "resp=3")
			})
		}
		kit.Must(t, pool.Close())
		return told
	})
}

// toldToGoRedis is what a connection is told: maps, doubles, nulls, a transaction, and what only a connection of its own can tell.
func toldToGoRedis(ctx context.Context, c *redis.Conn, who int) string {
	key := fmt.Sprintf("go:%d", who)
	first := fmt.Sprint(c.Get(ctx, "none"), c.Get(ctx, "none")) // over a connection that is shared
	pipe := c.TxPipeline()
	pipe.Set(ctx, key, who, 0)
	pipe.Incr(ctx, key)
	queued, err := pipe.Exec(ctx)
	return fmt.Sprintln(
		first, c.Set(ctx, key, who, 0), c.Get(ctx, key), c.HSet(ctx, "h"+key, "a", 1), c.HGetAll(ctx, "h"+key), c.ZAdd(ctx, "z"+key, redis.Z{Score: 1.5, Member: "a"}),
		c.ZRangeWithScores(ctx, "z"+key, 0, -1), c.ZScore(ctx, "z"+key, "a"), c.SAdd(ctx, "s"+key, "a"), c.SMembers(ctx, "s"+key), c.LPop(ctx, "none"),
		queued, err, c.ClientGetName(ctx), c.ConfigGet(ctx, "databases"), c.Eval(ctx, "return {1, 'a', {2}}", nil), c.Do(ctx, "GET"))
}

// TestRedisPyShares: so do those of redis-py, which select a database and give themselves a name.
func TestRedisPyShares(t *testing.T) {
	r := startSharing(t)
	r.alike(t, func(addr string) string {
		told, end := startPython(t, addr)
		defer end()
		if addr == r.proxy.Addr() {
			r.want(t, "upstream_shared_db3_resp2", 16, "db=3") // each of 8 has another connection, for its pipelines
		}
		return told
	})
}

// startPython runs the program to where it waits for its end.
func startPython(t *testing.T, addr string) (told string, end func()) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	kit.Must(t, err)
	cmd := exec.CommandContext(t.Context(), clients.Python(t), "../clients/python/sharing.py", host, port)
	stdin, err := cmd.StdinPipe()
	kit.Must(t, err)
	stdout, err := cmd.StdoutPipe()
	kit.Must(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	kit.Must(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && lines.Text() != "told" {
		told += lines.Text() + "\n"
	}
	if lines.Text() != "told" {
		t.Fatalf("the program ended: %s%s", told, &stderr)
	}
	return told, func() { _ = stdin.Close(); _ = cmd.Wait() }
}

// startSharing is startRelay with clients that share two connections of each kind.
func startSharing(t *testing.T) *relay {
	t.Helper()
	upstream := kit.StartRedis(t)
	args := []string{"--upstream", upstream.URL(), "--upstream-connections", "2"}
	return &relay{upstream, kit.StartProxy(t, redistest.URLs(kit.StartMasters(t)), args...)}
}

// want wants so many clients to share in a group, of PROXY INFO's name, on two connections, of which CLIENT LIST says what marks
// them, when they have been quiet for a while.
func (r *relay) want(t *testing.T, group string, sharers int, mark string) {
	t.Helper()
	through, control := dial(t, r.proxy.Addr()), r.control(t)
	kit.Soon(t, func() error {
		info, err := through.Do("PROXY", "INFO")
		if err != nil {
			return err
		}
		if want := fmt.Sprintf("%s:clients=%d,connections=2\r\n", group, sharers); !strings.Contains(fmt.Sprint(info), want) {
			return fmt.Errorf("%q is not in PROXY INFO:\n%v", want, info)
		}
		list, err := control.Do("CLIENT", "LIST")
		if err != nil {
			return err
		}
		n := 0
		for field := range strings.FieldsSeq(fmt.Sprint(list)) {
			if field == mark {
				n++
			}
		}
		if n != 2 {
			return fmt.Errorf("%d connections with %s:\n%v", n, mark, list)
		}
		return nil
	})
}
