package cli

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	embeddedserver "github.com/alicebob/miniredis/v2/server"
	"github.com/urfave/cli/v2"

	"redlock-proxy/conf"
	"redlock-proxy/daemon"
)

// demoMasterTimeout limits the time that an embedded master may take to reply. All masters run in
// this process, so busy processors slow them down at the same time.
const demoMasterTimeout = 2 * time.Second

func demoFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "masters", Value: 5, Usage: "`NUMBER`: embedded masters"},
		&cli.StringFlag{Name: "listen", Value: conf.Default().Listen, Usage: "`ADDR`: address (host:port) for clients"},
	}
}

// demoAction runs a proxy, its masters and its upstream in this process. It needs no Redis.
func demoAction(c *cli.Context) error {
	if n := c.Int("masters"); n < 1 {
		return fmt.Errorf("--masters: %d is less than 1", n)
	}
	servers, stop, err := startEmbeddedServers(c.Int("masters") + 1)
	if err != nil {
		return err
	}
	defer stop()
	if err := addACLCommand(servers[0]); err != nil {
		return err
	}
	cfg := conf.Default()
	cfg.Listen = c.String("listen")
	cfg.FreshStart = true
	cfg.MasterTimeout = demoMasterTimeout
	for _, m := range servers[1:] {
		cfg.Masters = append(cfg.Masters, "redis://"+m.Addr())
	}
	cfg.Upstream = "redis://" + servers[0].Addr()
	cfg.LockKeys = []string{"lock:*"}
	if err := cfg.Validate(); err != nil {
		return err
	}
	return daemon.Serve(c.Context, daemon.Options{
		Config: cfg, Version: c.App.Version, Log: slog.New(slog.DiscardHandler),
		OnReady: func(addr net.Addr) { printIntroduction(c.App.Writer, c.App.Version, cfg, addr) },
	})
}

// startEmbeddedServers starts n in-memory Redis servers whose keys expire in real time.
func startEmbeddedServers(n int) (servers []*miniredis.Miniredis, stop func(), err error) {
	stop = func() {
		for _, m := range servers {
			m.Close()
		}
	}
	for range n {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		if err := m.Start(); err != nil {
			stop()
			return nil, nil, err
		}
		servers = append(servers, m)
	}
	return servers, stop, nil
}

// addACLCommand adds the ACL command to an embedded Redis, which lacks it. The replies of ACL give
// every client all permissions. Without these replies, the proxy would ask the upstream for
// permission before each command.
func addACLCommand(m *miniredis.Miniredis) error {
	return m.Server().Register("ACL", func(c *embeddedserver.Peer, _ string, args []string) {
		switch {
		case len(args) == 1 && strings.EqualFold(args[0], "WHOAMI"):
			c.WriteBulk("default")
		case len(args) == 2 && strings.EqualFold(args[0], "GETUSER"):
			c.WriteMapLen(3)
			for _, text := range []string{"commands", "+@all", "keys", "~*", "channels", "&*"} {
				c.WriteBulk(text)
			}
		case len(args) == 0:
			c.WriteError("ERR wrong number of arguments for 'acl' command")
		default:
			c.WriteError(fmt.Sprintf("ERR unknown subcommand '%.128s'. Try ACL HELP.", args[0]))
		}
	})
}

// printIntroduction prints commands to try.
func printIntroduction(out io.Writer, version string, cfg conf.Config, addr net.Addr) {
	host, port, _ := net.SplitHostPort(addr.String())
	redisCLI := "redis-cli -p " + port
	if host != "127.0.0.1" && host != "::" {
		redisCLI = "redis-cli -h " + host + " -p " + port
	}
	fmt.Fprintf(out, `redlock-proxy %s: a demo with %s masters in this process. All data is lost when it ends.
Its upstream is not a real Redis, but miniredis (%[4]s), an imitation in memory that lacks some commands.

Type in another terminal:

  %[3]s LOCK job:1 me PX 30000        the validity in ms: the lock is yours
  %[3]s LOCK job:1 you PX 30000       nil: another client holds it
  %[3]s EXTEND job:1 me PX 60000      the new validity
  %[3]s UNLOCK job:1 you              0: you do not hold it
  %[3]s UNLOCK job:1 me               1: released
  %[3]s LOCK job:1 '*' EX 30          the proxy makes a token
  %[3]s LOCK job:1 you PX 1000 BLOCK 60000    wait for it
  %[3]s SET lock:job me NX PX 30000   the usual lock command of applications: on lock:* it takes a lock, too
  %[3]s DEL lock:job
  %[3]s SET greeting hello            any other command goes to the upstream Redis
  %[3]s GET greeting

Ctrl-C ends the demo.
`, version, strconv.Itoa(len(cfg.Masters)), redisCLI, strings.TrimPrefix(cfg.Upstream, "redis://"))
}
