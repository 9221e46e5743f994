package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/proxy"
)

// BenchmarkLockServer measures LOCK and UNLOCK at a lock server, one command at a time by several
// clients. The server's masters cost nothing, so the benchmark measures the loop that serves a
// client.
func BenchmarkLockServer(b *testing.B) {
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) { benchmarkLockServer(b, clients) })
	}
}

func benchmarkLockServer(b *testing.B, clients int) {
	locks := newMemoryLocks()
	table := commands.NewTable(commands.Options{Locks: memoryLocker{locks}, Register: locks,
		Settings: commands.Settings{MaxTTL: time.Hour}})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- proxy.NewServer(proxy.Options{Table: table}).Serve(ctx, ln) }()
	defer func() { stop(); <-done }()
	var running sync.WaitGroup
	defer running.Wait()
	before := usedCPU()
	for i := range clients {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		running.Go(func() {
			if err := takeAndRelease(conn, fmt.Sprint("lock", i), b.N/clients+1); err != nil {
				b.Error(err)
			}
		})
	}
	running.Wait()
	b.ReportMetric(float64(usedCPU()-before)/float64(b.N), "cpu-ns/op")
}

// takeAndRelease repeatedly takes and releases a lock; times is the number of repetitions.
func takeAndRelease(conn net.Conn, key string, times int) error {
	in := bufio.NewReader(conn)
	for range times {
		for _, command := range []string{lines("LOCK " + key + " t PX 10000"), lines("UNLOCK " + key + " t")} {
			if _, err := io.WriteString(conn, command); err != nil {
				return err
			}
			if reply, err := in.ReadString('\n'); err != nil || reply[0] != ':' {
				return fmt.Errorf("%q, %w", reply, err)
			}
		}
	}
	return nil
}

// usedCPU returns the CPU time that this process has used.
func usedCPU() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
