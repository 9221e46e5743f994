//go:build integration

package relay

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/certtest"
	"redlock-proxy/internal/redistest"
)

// TestSentinelFailover kills the master behind three real Sentinels, or stops it without closing
// its connections. The proxy follows the Sentinels to the replica, and does not continue
// transactions on the replica.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	for name, disable := range map[string]func(*redistest.Server) error{"killed": (*redistest.Server).Kill,
		"frozen": (*redistest.Server).Pause} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master := kit.StartRedis(t)
			replica := kit.StartReplica(t, master)
			proxy := kit.StartProxy(t, redistest.URLs([]*redistest.Server{kit.StartRedis(t)}), "--upstream",
				sentinelURL(startSentinels(t, master)))

			pool := redis.NewClient(&redis.Options{Addr: proxy.Addr(), DisableIdentity: true})
			t.Cleanup(func() { _ = pool.Close() })
			kit.Must(t, pool.Set(t.Context(), "before", "1", 0).Err())
			transaction, idle := dial(t, proxy.Addr()), dial(t, proxy.Addr())
			kit.Want(t, idle, "1", "GET", "before")
			kit.Want(t, transaction, "OK", "MULTI")
			kit.Want(t, transaction, "QUEUED", "SET", "half", "1")
			kit.Await(t, "the SET is at the replica", func() bool {
				value, err := dial(t, replica.Addr()).Do("GET", "before")
				return err == nil && value == "1"
			})
			time.Sleep(3 * time.Second) // the proxy parks idle clients in this time
			kit.Must(t, disable(master))

			_, err := proxy.WaitLog("from="+master.Addr()+" to="+replica.Addr(), kit.WaitLimit)
			kit.Must(t, err)
			for _, client := range []*redistest.Client{transaction, idle} {
				if rest, err := client.ReceiveAll(); err != nil || len(rest) > 0 {
					t.Errorf("a connection to the old master: %q, %v; want its end", rest, err)
				}
			}
			kit.Eventually(t, func() error { return pool.Set(t.Context(), "after", "2", 0).Err() })
			replicaClient := dial(t, replica.Addr())
			kit.Want(t, replicaClient, "2", "GET", "after")
			kit.Want(t, replicaClient, int64(0), "EXISTS", "half")
			kit.Eventually(t, func() error {
				info, err := dial(t, proxy.Addr()).Do("PROXY", "INFO")
				if text := fmt.Sprint(info); err != nil || !strings.Contains(text,
					"upstream_address:"+replica.Addr()+"\r\nupstream_state:up") {
					return fmt.Errorf("%v, %v", text, err)
				}
				return nil
			})
			if name == "frozen" {
				kit.Must(t, master.Continue())
			}
		})
	}
}

// TestSentinelOverTLS checks that the proxy uses TLS for Sentinels, master and replica, with the
// certificate authority in ca. It also follows a failover with TLS.
func TestSentinelOverTLS(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	ca := certtest.NewCA(t)
	tlsArgs := func(port string) []string {
		pair := ca.Issue(t)
		return []string{"--tls-port", port, "--tls-cert-file", pair.Cert, "--tls-key-file", pair.Key,
			"--tls-ca-cert-file", ca.File,
			"--tls-auth-clients", "no", "--tls-replication", "yes"}
	}
	masterPort, replicaPort, sentinelPort := kit.FreePort(t), kit.FreePort(t), kit.FreePort(t)
	master := kit.StartRedis(t, tlsArgs(masterPort)...)
	replica := kit.StartSameVersion(t, master, append(tlsArgs(replicaPort), "--replicaof", "127.0.0.1", masterPort,
		"--repl-diskless-sync-delay", "0")...)
	kit.Eventually(t, func() error { return kit.CheckInSync(replica) })
	sentinel := startSentinel(t, "127.0.0.1", masterPort, 1, tlsArgs(sentinelPort)...)
	proxy := kit.StartProxy(t, redistest.URLs([]*redistest.Server{kit.StartRedis(t)}), "--ca", ca.File,
		"--upstream", "rediss+sentinel://127.0.0.1:"+sentinelPort+"/mymaster")
	kit.Eventually(t, func() error { _, err := dial(t, proxy.Addr()).Do("SET", "before", "1"); return err })
	kit.Await(t, "the Sentinel knows the replica", func() bool {
		reply, err := dial(t, sentinel).Do("SENTINEL", "REPLICAS", "mymaster")
		return err == nil && strings.Contains(fmt.Sprint(reply), replicaPort)
	})
	kit.Eventually(t, func() error {
		reply, err := dial(t, sentinel).Do("SENTINEL", "FAILOVER", "mymaster")
		if err == nil && reply != "OK" {
			err = fmt.Errorf("%v", reply)
		}
		return err
	})
	_, err := proxy.WaitLog("from=127.0.0.1:"+masterPort+" to=127.0.0.1:"+replicaPort, kit.WaitLimit)
	kit.Must(t, err)
	kit.Eventually(t, func() error {
		if reply, err := dial(t, proxy.Addr()).Do("SET", "after", "2"); err != nil || reply != "OK" {
			return fmt.Errorf("%v, %v", reply, err)
		}
		return nil
	})
	kit.Want(t, dial(t, replica.Addr()), "2", "GET", "after")
}

// TestNoSentinel checks that the error names an unreachable Sentinel, even for a lock command. The
// log does not contain the password for Sentinels.
func TestNoSentinel(t *testing.T) {
	addr, err := redistest.FreeAddr()
	kit.Must(t, err)
	proxy := kit.StartProxy(t, redistest.URLs([]*redistest.Server{kit.StartRedis(t)}), "--upstream",
		"redis+sentinel://"+addr+"/mymaster?sentinel_password=hunter2")
	cause := "upstream mymaster: no Sentinel returned the address of mymaster: " + addr + ": connection refused"
	for _, c := range []struct{ command, want string }{
		{"GET k", "ERR " + cause},
		{"LOCK k t PX 10000", "ERR cannot check this client's permissions: " + cause},
	} {
		reply, err := dial(t, proxy.Addr()).Do(strings.Fields(c.command)...)
		kit.Must(t, err)
		if fmt.Sprint(reply) != c.want {
			t.Errorf("%s: %v, want %s", c.command, reply, c.want)
		}
	}
	kit.WantLogged(t, proxy, "upstream down")
	if strings.Contains(proxy.Log(), "hunter2") {
		t.Errorf("the log:\n%s", proxy.Log())
	}
}

func dial(t *testing.T, addr string) *redistest.Client {
	t.Helper()
	client, err := redistest.Dial(addr, kit.WaitLimit)
	kit.Must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// startSentinels starts three Sentinels that know each other and the replica.
func startSentinels(t *testing.T, master *redistest.Server) []string {
	t.Helper()
	host, port, err := net.SplitHostPort(master.Addr())
	kit.Must(t, err)
	var addrs []string
	for range 3 {
		addrs = append(addrs, startSentinel(t, host, port, 2))
	}
	for _, addr := range addrs {
		kit.Await(t, "the Sentinels know each other", func() bool {
			reply, err := dial(t, addr).Do("SENTINEL", "MASTER", "mymaster")
			text := fmt.Sprint(reply)
			return err == nil && strings.Contains(text, "num-slaves 1 ") && strings.Contains(text, "num-other-sentinels 2 ")
		})
	}
	return addrs
}

// startSentinel starts a Sentinel with a quorum and further settings.
func startSentinel(t *testing.T, host, port string, quorum int, settings ...string) (addr string) {
	t.Helper()
	server, err := harness.StartServer(harness.ServerOptions{Program: "redis-server",
		Arguments: func(addr, dir string) ([]string, error) {
			ownHost, ownPort, err := net.SplitHostPort(addr)
			path := filepath.Join(dir, "sentinel.conf")
			text := fmt.Sprintf("bind %s\nport %s\ndir %s\nsentinel monitor mymaster %s %s %d\nsentinel down-after-milliseconds mymaster 1500\n"+
				"sentinel failover-timeout mymaster 10000\n", ownHost, ownPort, dir, host, port, quorum)
			return append([]string{path, "--sentinel"}, settings...), errors.Join(err,
				os.WriteFile(path, []byte(text), 0o600))
		}})
	kit.Must(t, err)
	t.Cleanup(func() { kit.NoError(t, server.Close()) })
	return server.Addr()
}

func sentinelURL(addrs []string) string {
	return "redis+sentinel://" + strings.Join(addrs, ",") + "/mymaster"
}
