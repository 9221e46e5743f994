// Command idlebench measures what an idle client costs the proxy: it connects many, lets each do a little, and reads the resident
// memory of the proxy's process (RSS; what the kernel holds for the sockets is not in it):
//
//	go run ./integration/idlebench
//	go run ./integration/idlebench -clients 1000 -settle 2s
//
// Both ends of every connection need a file descriptor in their process, so `ulimit -Hn` must allow more than there are clients.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"

	"redlock-proxy/integration/harness"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "idlebench:", err)
		os.Exit(1)
	}
}

// settings are the command line.
type settings struct {
	clients int
	settle  time.Duration
	binary  string // of the proxy; empty: build it
}

// spareFiles are the file descriptors that each process needs beside those of the clients.
const spareFiles = 200

// replyTimeout bounds one command.
const replyTimeout = 10 * time.Second

func run(args []string, out, log io.Writer) error {
	set, err := parseSettings(args, log)
	if err != nil {
		return err
	}
	if err := allowFiles(uint64(set.clients + spareFiles)); err != nil {
		return err
	}
	masters, err := harness.StartMasters(5)
	if err != nil {
		return err
	}
	err = runProxy(set, masters, out)
	return errors.Join(err, harness.CloseAll(masters), harness.RemoveBuild())
}

func parseSettings(args []string, log io.Writer) (set settings, err error) {
	flags := flag.NewFlagSet("idlebench", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.IntVar(&set.clients, "clients", 10_000, "number of clients")
	flags.DurationVar(&set.settle, "settle", 10*time.Second, "pause before the memory is read")
	flags.StringVar(&set.binary, "proxy", "", "program of the proxy; built when not given")
	if err := flags.Parse(args); err != nil {
		return set, err
	}
	if set.clients < 1 || set.settle < 0 || flags.NArg() > 0 {
		return set, fmt.Errorf("clients must be positive, settle not negative, and there are no other arguments: %q", flags.Args())
	}
	return set, nil
}

func runProxy(set settings, masters []*harness.Redis, out io.Writer) error {
	proxy, err := harness.StartProxy(harness.ProxyOptions{
		Binary: set.binary, Masters: harness.URLs(masters), Args: []string{"--max-clients", strconv.Itoa(set.clients)},
	})
	if err != nil {
		return err
	}
	return errors.Join(measure(set, proxy, out), proxy.Close())
}

// allowFiles raises the limit on open files, which children inherit.
func allowFiles(n uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if limit.Cur >= n {
		return nil
	}
	limit.Cur, limit.Max = n, max(n, limit.Max) // beyond Max only root may go
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("%d open files are needed (ulimit -Hn %d): %w", n, n, err)
	}
	return nil
}

// measure has the clients do one thing after the other, and prints the memory behind each.
func measure(set settings, proxy *harness.Proxy, out io.Writer) error {
	empty, err := settledRSS(set, proxy)
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
		if err := everyone(clients, s.do); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		rss, err := settledRSS(set, proxy)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| %s | %.1f | %.1f |\n", s.name, float64(rss)/1e6, float64(rss-empty)/1e3/float64(len(clients)))
	}
	return nil
}

// settledRSS reads the memory behind a pause.
func settledRSS(set settings, proxy *harness.Proxy) (int64, error) {
	time.Sleep(set.settle)
	return proxy.RSS()
}

// stage is something that each client does once, before it is idle again.
type stage struct {
	name string
	do   func(client *harness.Client, key string) error
}

func stages() []stage {
	return []stage{
		{"connected and sent one PING", func(client *harness.Client, _ string) error {
			return expect(client, "PONG", "PING")
		}},
		{"then locked and unlocked", func(client *harness.Client, key string) error {
			reply, err := client.Do("LOCK", key, "t", "PX", "10000")
			if err != nil {
				return err
			}
			if validity, ok := reply.(int64); !ok || validity <= 0 {
				return fmt.Errorf("LOCK: got %v, want a validity", reply)
			}
			return expect(client, int64(1), "UNLOCK", key, "t")
		}},
	}
}

// expect sends a command and compares its reply.
func expect(client *harness.Client, want any, command ...string) error {
	reply, err := client.Do(command...)
	if err == nil && reply != want {
		err = fmt.Errorf("%v: got %v, want %v", command, reply, want)
	}
	return err
}

func everyone(clients []*harness.Client, do func(*harness.Client, string) error) error {
	for i, client := range clients {
		if err := do(client, "key:"+strconv.Itoa(i)); err != nil {
			return fmt.Errorf("client %d: %w", i, err)
		}
	}
	return nil
}

// connect opens n connections. It returns those that it has, also with an error.
func connect(addr string, n int) ([]*harness.Client, error) {
	clients := make([]*harness.Client, 0, n)
	for range n {
		client, err := harness.Dial(addr, replyTimeout)
		if err != nil {
			return clients, err
		}
		clients = append(clients, client)
	}
	return clients, nil
}

func closeAll(clients []*harness.Client) {
	for _, client := range clients {
		_ = client.Close()
	}
}
