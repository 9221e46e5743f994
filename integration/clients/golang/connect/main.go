// Command connect connects to the server HOST PORT with a Go library in its default configuration:
// connect go-redis|rueidis|valkey-go HOST PORT
//
// It prints "version VERSION", and then "NAME RESULT" for each step. connect_test.go in package
// clients checks the results.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"time"
)

const releaseScript = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"

// client adapts the client of one library.
type client interface {
	// Do executes a command. A null reply is nil.
	Do(ctx context.Context, words ...string) (any, error)
	// Pipeline executes several commands in one pipeline.
	Pipeline(ctx context.Context, commands ...[]string) ([]any, error)
	// Listen subscribes to a channel before it returns, and sends at least the first message to
	// messages.
	Listen(ctx context.Context, channel string, messages chan<- any) error
	// GetCached reads a key through the client-side cache. ok is false if the library has no cache.
	GetCached(ctx context.Context, key string) (value any, ok bool, err error)
}

// library names the module of a library, and connects a client.
type library struct {
	module  string
	connect func(addr string) (client, error)
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: connect LIBRARY HOST PORT")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	selected, ok := libraries()[os.Args[1]]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such library")
		os.Exit(2)
	}
	fmt.Println("version", version(selected.module))
	s := stepRunner{ctx: ctx, open: func() (client, error) { return selected.connect(net.JoinHostPort(os.Args[2], os.Args[3])) }}
	s.runStep("lock", func() (any, any, error) { return s.runLifecycle("lock:first") })
	s.runStep("other", func() (any, any, error) { return s.runLifecycle("data:first") })
	s.runStep("pipeline", s.runPipeline)
	s.runStep("messages", s.runMessages)
	s.runStep("tracking", s.runTracking)
}

// version returns the version of a module in this program.
func version(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == module {
				return strings.TrimPrefix(dep.Version, "v")
			}
		}
	}
	return "unknown"
}

// stepRunner runs the steps of a client.
type stepRunner struct {
	ctx  context.Context
	open func() (client, error)
}

// runStep runs a step, and prints its result. It prints nothing if the wanted result is nil.
func (s stepRunner) runStep(name string, run func() (got, want any, err error)) {
	switch got, want, err := run(); {
	case err != nil:
		fmt.Println(name, "refused:", err)
	case want == nil:
	case reflect.DeepEqual(got, want):
		fmt.Println(name, "yes")
	default:
		fmt.Println(name, got)
	}
}

// runLifecycle takes and releases a lock, while a second client tries to take it, too.
func (s stepRunner) runLifecycle(key string) (got, want any, err error) {
	first, err := s.open()
	if err != nil {
		return nil, nil, err
	}
	second, err := s.open()
	if err != nil {
		return nil, nil, err
	}
	take := func(token string) []string { return []string{"SET", key, token, "NX", "PX", "20000"} }
	var replies []any
	for _, c := range []struct {
		client client
		words  []string
	}{
		{first, take("t")}, {second, take("u")}, {second, []string{"GET", key}},
		{second, []string{"EVAL", releaseScript, "1", key, "u"}}, {first, []string{"EVAL", releaseScript, "1", key, "t"}},
	} {
		reply, err := c.client.Do(s.ctx, c.words...)
		if err != nil {
			return nil, nil, err
		}
		replies = append(replies, reply)
	}
	return replies, []any{"OK", nil, "t", int64(0), int64(1)}, nil
}

// runPipeline sends several commands, some on a lock key, in one pipeline.
func (s stepRunner) runPipeline() (got, want any, err error) {
	client, err := s.open()
	if err != nil {
		return nil, nil, err
	}
	const key = "lock:pipeline"
	got, err = client.Pipeline(s.ctx, []string{"SET", key, "t", "NX", "PX", "20000"},
		[]string{"GET", key}, []string{"PING"}, []string{"DEL", key})
	return got, []any{"OK", "t", "PONG", int64(1)}, err
}

// runMessages lets one client receive a message that another client publishes.
func (s stepRunner) runMessages() (got, want any, err error) {
	listener, err := s.open()
	if err != nil {
		return nil, nil, err
	}
	publisher, err := s.open()
	if err != nil {
		return nil, nil, err
	}
	messages := make(chan any, 1)
	if err := listener.Listen(s.ctx, "channel", messages); err != nil {
		return nil, nil, err
	}
	receivers, err := publisher.Do(s.ctx, "PUBLISH", "channel", "hello")
	if err != nil {
		return nil, nil, err
	}
	select {
	case message := <-messages:
		return []any{receivers, message}, []any{int64(1), "hello"}, nil
	case <-s.ctx.Done():
		return nil, nil, s.ctx.Err()
	}
}

// runTracking reads a key through the cache, which another client's change must invalidate.
func (s stepRunner) runTracking() (got, want any, err error) {
	reader, err := s.open()
	if err != nil {
		return nil, nil, err
	}
	writer, err := s.open()
	if err != nil {
		return nil, nil, err
	}
	const key = "lock:tracked"
	for _, token := range []string{"t", "u"} {
		if _, err := writer.Do(s.ctx, "SET", key, token, "PX", "20000"); err != nil {
			return nil, nil, err
		}
		for got = nil; got != token; { // the invalidation arrives soon
			value, ok, err := reader.GetCached(s.ctx, key)
			if err != nil || !ok {
				return nil, nil, err
			}
			got = value
		}
	}
	return got, "u", nil
}
