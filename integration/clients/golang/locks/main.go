// Command locks uses lock libraries of Go, and sends the commands of libraries of .NET, Elixir and
// Rust, to the server HOST PORT as client NAME: locks HOST PORT NAME
//
// It reads requests "DIALECT OPERATION KEY ARGUMENT…" line by line, and replies to each with one
// line: the result of the library, or its error.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var errOperation = errors.New("no such operation")

// request holds one line of the input.
type request struct {
	operation, key string
	arguments      []string
}

// dialect executes requests with one library, and returns the result and the error.
type dialect func(context.Context, request) (any, error)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: locks HOST PORT NAME")
		os.Exit(2)
	}
	if err := serve(context.Background(), net.JoinHostPort(os.Args[1], os.Args[2]), os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve executes the requests of the input until the input ends.
func serve(ctx context.Context, addr, name string) error {
	byName, err := dialects(addr, name)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		result, err := byName[words[0]](ctx, request{words[1], words[2], words[3:]})
		fmt.Println(format(result, err))
	}
	return lines.Err()
}

func dialects(addr, name string) (map[string]dialect, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	socket, err := dialSocket(addr)
	if err != nil {
		return nil, err
	}
	return map[string]dialect{
		"redsync":        newRedsync(rdb).do,
		"redsync-retake": newRedsync(rdb, retakeOptions()...).do,
		"redislock":      newRedislock(rdb).do,
		"go-zero":        goZero{rdb, name}.do,
		"stackexchange":  stackExchange{socket, name}.do,
		"redlock.net":    redlockNet{socket, name}.do,
		"elixir-redlock": newElixir(addr, name).do,
		"redlock-rs":     redlockRS{addr, []byte(name + "\x00\xff\r\n 20 raw bytes")}.do,
		"rslock":         rslock{addr, name}.do,
		"rueidislock":    rueidisLock{socket, name}.do,
	}, nil
}

func format(result any, err error) string {
	text := fmt.Sprintf("%v", result)
	if err != nil {
		text = fmt.Sprintf("%T: %v", err, err)
	}
	return strings.Join(strings.Fields(text), " ")
}

// duration returns an argument in milliseconds as a duration.
func (r request) duration(i int) time.Duration {
	ms, _ := strconv.ParseInt(r.arguments[i], 10, 64)
	return time.Duration(ms) * time.Millisecond
}

// keys returns the keys of a lock that may have several.
func (r request) keys() []string { return strings.Split(r.key, ",") }
