package proxy_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/proxy"
	"redlock-proxy/proxy/upstream"
)

// BenchmarkOtherKeys measures GET and SET of keys that are not lock keys, in pipelines of a
// hundred, with and without lock keys configured.
func BenchmarkOtherKeys(b *testing.B) {
	server := redistest.New(b, redistest.Options{})
	for _, c := range []struct {
		name     string
		lockKeys []string
	}{{"none", nil}, {"one", []string{"lock:*"}}, {"three", []string{"lock:*", "job-lock:*", "schedule:*:lock"}}} {
		b.Run(c.name, func(b *testing.B) { benchmarkOtherKeys(b, server.URL(), c.lockKeys) })
	}
}

func benchmarkOtherKeys(b *testing.B, url string, lockKeys []string) {
	up, err := upstream.New(url, testTimeout, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer up.Close()
	locks := newMemoryLocks()
	table := commands.NewRelayTable(commands.Options{Locks: memoryLocker{locks}, Register: locks, LockKeys: lockKeys,
		Settings: commands.Settings{MaxTTL: time.Hour}})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- proxy.NewServer(proxy.Options{Table: table, Upstream: up}).Serve(ctx, ln) }()
	defer func() { stop(); <-done }()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	const pairs = 50
	sent := []byte(strings.Repeat(lines("SET user:1234567:profile 0123456789", "GET user:1234567:profile"), pairs))
	reply := make([]byte, pairs*len("+OK\r\n$10\r\n0123456789\r\n"))
	for b.Loop() {
		if _, err := conn.Write(sent); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(in, reply); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*2*pairs), "ns/command")
}
