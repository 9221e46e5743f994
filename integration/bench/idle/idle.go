package idle

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"redlock-proxy/integration/bench/suite"
	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/redistest"
)

// replyTimeout limits one command.
const replyTimeout = 10 * time.Second

// measure runs the stages one after the other, and prints the memory after each.
func measure(ctx context.Context, set settings, proxy *harness.Proxy, out io.Writer) error {
	empty, err := readSettledRSS(ctx, set, proxy)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "## Memory of %d idle clients\n\n", set.clients)
	fmt.Fprintln(out, "| each client has | RSS of the proxy MB | per client KB |")
	fmt.Fprintln(out, "|---|--:|--:|")
	fmt.Fprintf(out, "| (no clients) | %.1f | |\n", float64(empty)/1e6)
	clients, err := connect(proxy.Addr(), set.clients)
	defer closeAll(clients)
	if err != nil {
		return err
	}
	for _, s := range stages() {
		if err := eachClient(ctx, clients, s.run); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		rss, err := readSettledRSS(ctx, set, proxy)
		if err != nil {
			return err
		}
		perClient := float64(rss-empty) / 1e3 / float64(len(clients))
		fmt.Fprintf(out, "| %s | %.1f | %.1f |\n", s.name, float64(rss)/1e6, perClient)
	}
	return nil
}

// readSettledRSS reads the memory after a pause.
func readSettledRSS(ctx context.Context, set settings, proxy *harness.Proxy) (int64, error) {
	if err := suite.Pause(ctx, set.settleTime); err != nil {
		return 0, err
	}
	return proxy.RSS()
}

// stage describes a step that each client does once, before it is idle again.
type stage struct {
	name string
	run  func(client *redistest.Client, key string) error
}

func stages() []stage {
	return []stage{
		{"connected and sent one PING", func(client *redistest.Client, _ string) error {
			return checkReply(client, "PONG", "PING")
		}},
		{"then locked and unlocked", func(client *redistest.Client, key string) error {
			reply, err := client.Do("LOCK", key, "t", "PX", "10000")
			if err != nil {
				return err
			}
			if validity, ok := reply.(int64); !ok || validity <= 0 {
				return fmt.Errorf("LOCK: got %v, want a validity", reply)
			}
			return checkReply(client, int64(1), "UNLOCK", key, "t")
		}},
	}
}

// checkReply sends a command, and returns an error unless its reply is want.
func checkReply(client *redistest.Client, want any, command ...string) error {
	reply, err := client.Do(command...)
	if err == nil && reply != want {
		err = fmt.Errorf("%v: got %v, want %v", command, reply, want)
	}
	return err
}

func eachClient(ctx context.Context, clients []*redistest.Client, do func(*redistest.Client, string) error) error {
	for i, client := range clients {
		if err := do(client, "key:"+strconv.Itoa(i)); err != nil {
			return fmt.Errorf("client %d: %w", i, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// connect opens n connections. After an error it returns the connections that it has opened.
func connect(addr string, n int) ([]*redistest.Client, error) {
	clients := make([]*redistest.Client, 0, n)
	for range n {
		client, err := redistest.Dial(addr, replyTimeout)
		if err != nil {
			return clients, err
		}
		clients = append(clients, client)
	}
	return clients, nil
}

func closeAll(clients []*redistest.Client) {
	for _, client := range clients {
		_ = client.Close()
	}
}
