// Command golang runs go-redis against a running redlock-proxy: golang HOST PORT
//
// It prints "ok NAME" for each check, and exits with code 1 at the first check that fails.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"time"

	"github.com/redis/go-redis/v9"
)

// session holds the client under test and the prefix of this run's keys.
type session struct {
	addr   string
	prefix string
	rdb    *redis.Client
}

// check describes one test of a client. Its error contains the expected and the actual reply.
type check struct {
	name string
	run  func(context.Context, session) error
}

func checks() []check {
	return []check{
		{"ping", ping}, {"lock", lock}, {"held", lockHeld}, {"unlock-wrong-token", unlockWrongToken},
		{"extend", extend}, {"unlock", unlock}, {"extend-after-unlock", extendAfterUnlock},
		{"made-token", checkGeneratedToken}, {"resp3", checkRESP3}, {"block-runs-out", checkBlockTimeout}, {"block-served", checkBlockGrant},
		{"error-expire", checkExpireError}, {"error-arity", checkArityError}, {"error-unknown", checkUnknownError},
		{"select", selectDatabase}, {"pipeline", checkPipeline}, {"name", checkClientName},
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: golang HOST PORT")
		os.Exit(2)
	}
	if err := run(context.Background(), net.JoinHostPort(os.Args[1], os.Args[2])); err != nil {
		fmt.Fprintln(os.Stderr, "FAILED", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	s := session{addr: addr, rdb: rdb, prefix: fmt.Sprintf("golang:%d:", time.Now().UnixNano())}
	for _, c := range checks() {
		if err := c.run(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Println("ok", c.name)
	}
	return nil
}

func ping(ctx context.Context, s session) error {
	return wantEqual("PONG", s.rdb.Do(ctx, "PING"))
}

func lock(ctx context.Context, s session) error {
	return wantBetween(9000, 10000, s.rdb.Do(ctx, "LOCK", s.prefix+"life", "t", "PX", 10000))
}

func lockHeld(ctx context.Context, s session) error {
	return wantNil(s.rdb.Do(ctx, "LOCK", s.prefix+"life", "t2", "PX", 10000))
}

func unlockWrongToken(ctx context.Context, s session) error {
	return wantEqual(int64(0), s.rdb.Do(ctx, "UNLOCK", s.prefix+"life", "t2"))
}

func extend(ctx context.Context, s session) error {
	return wantBetween(9000, 10000, s.rdb.Do(ctx, "EXTEND", s.prefix+"life", "t", "PX", 10000))
}

func unlock(ctx context.Context, s session) error {
	return wantEqual(int64(1), s.rdb.Do(ctx, "UNLOCK", s.prefix+"life", "t"))
}

func extendAfterUnlock(ctx context.Context, s session) error {
	return wantNil(s.rdb.Do(ctx, "EXTEND", s.prefix+"life", "t", "PX", 10000))
}

// checkGeneratedToken reads the reply with go-redis' reader of maps, which accepts RESP2 and RESP3.
func checkGeneratedToken(ctx context.Context, s session) error {
	cmd := redis.NewMapStringInterfaceCmd(ctx, "LOCK", s.prefix+"made", "*", "EX", 5)
	if err := s.rdb.Process(ctx, cmd); err != nil {
		return fmt.Errorf("%v: %w", cmd.Args(), err)
	}
	validity, _ := cmd.Val()["validity"].(int64)
	token, _ := cmd.Val()["token"].(string)
	if validity <= 4000 || validity > 5000 || !hexToken.MatchString(token) {
		return fmt.Errorf("%v: expected a validity in (4000..5000] and a token of 32 hexadecimal digits, got %v",
			cmd.Args(), cmd.Val())
	}
	return wantEqual(int64(1), s.rdb.Do(ctx, "UNLOCK", s.prefix+"made", token))
}

var hexToken = regexp.MustCompile(`^[0-9a-f]{32}$`)

// checkRESP3 reads the raw reply: go-redis uses RESP3 if the server supports it.
func checkRESP3(ctx context.Context, s session) error {
	cmd := s.rdb.Do(ctx, "LOCK", s.prefix+"resp3", "*", "EX", 5)
	reply, ok := cmd.Val().(map[any]any)
	if !ok || len(reply) != 2 {
		return unexpectedReplyError(cmd, "a map of two")
	}
	return wantEqual(int64(1), s.rdb.Do(ctx, "UNLOCK", s.prefix+"resp3", reply["token"]))
}

func checkBlockTimeout(ctx context.Context, s session) error {
	key := s.prefix + "out"
	if err := s.rdb.Do(ctx, "LOCK", key, "t", "PX", 10000).Err(); err != nil {
		return err
	}
	start := time.Now()
	if err := wantNil(s.rdb.Do(ctx, "LOCK", key, "t2", "PX", 1000, "BLOCK", 200)); err != nil {
		return err
	}
	if err := wantWaited(start, 190*time.Millisecond, 9*time.Second); err != nil {
		return err
	}
	return wantEqual(int64(1), s.rdb.Do(ctx, "UNLOCK", key, "t"))
}

func checkBlockGrant(ctx context.Context, s session) error {
	key := s.prefix + "served"
	if err := s.rdb.Do(ctx, "LOCK", key, "t", "PX", 60000).Err(); err != nil {
		return err
	}
	waiter := redis.NewClient(&redis.Options{Addr: s.addr, ReadTimeout: time.Minute})
	defer waiter.Close()
	release := time.AfterFunc(300*time.Millisecond, func() { s.rdb.Do(ctx, "UNLOCK", key, "t") })
	defer release.Stop()
	start := time.Now()
	if err := wantBetween(9000, 10000, waiter.Do(ctx, "LOCK", key, "t2", "PX", 10000, "BLOCK", 30000)); err != nil {
		return err
	}
	if err := wantWaited(start, 250*time.Millisecond, 25*time.Second); err != nil {
		return err
	}
	return wantEqual(int64(1), s.rdb.Do(ctx, "UNLOCK", key, "t2"))
}

func checkExpireError(ctx context.Context, s session) error {
	return wantError("ERR invalid expire time in 'lock' command", s.rdb.Do(ctx, "LOCK", "k", "t", "PX", 0))
}

func checkArityError(ctx context.Context, s session) error {
	return wantError("ERR wrong number of arguments for 'lock' command: "+
		"LOCK key token PX milliseconds|EX seconds [SHARED|SLOTS slots] [KEEPALIVE [MAXHOLD milliseconds]] [BLOCK milliseconds] [FENCE] [AT]",
		s.rdb.Do(ctx, "LOCK", "k", "t"))
}

func checkUnknownError(ctx context.Context, s session) error {
	return wantError("ERR unknown command 'FOO', with args beginning with: 'a' 'b' ", s.rdb.Do(ctx, "FOO", "a", "b"))
}

// selectDatabase takes the same key in two databases, as two locks.
func selectDatabase(ctx context.Context, s session) error {
	secondDB := redis.NewClient(&redis.Options{Addr: s.addr, DB: 1})
	defer secondDB.Close()
	return errors.Join(
		wantBetween(9000, 10000, s.rdb.Do(ctx, "LOCK", s.prefix+"db", "t0", "PX", 10000)),
		wantBetween(9000, 10000, secondDB.Do(ctx, "LOCK", s.prefix+"db", "t1", "PX", 10000)),
		wantEqual(int64(1), s.rdb.Do(ctx, "UNLOCK", s.prefix+"db", "t0")),
		wantEqual(int64(1), secondDB.Do(ctx, "UNLOCK", s.prefix+"db", "t1")),
	)
}

func checkPipeline(ctx context.Context, s session) error {
	pipe := s.rdb.Pipeline()
	lockCmd := pipe.Do(ctx, "LOCK", s.prefix+"pipe", "t", "PX", 10000)
	unlockCmd := pipe.Do(ctx, "UNLOCK", s.prefix+"pipe", "t")
	pong := pipe.Do(ctx, "PING")
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	return errors.Join(wantBetween(9000, 10000, lockCmd), wantEqual(int64(1), unlockCmd), wantEqual("PONG", pong))
}

// checkClientName uses a single connection: a name belongs to a connection, not to the pool.
func checkClientName(ctx context.Context, s session) error {
	conn := s.rdb.Conn()
	defer conn.Close()
	if err := conn.ClientSetName(ctx, "worker-7").Err(); err != nil {
		return err
	}
	if got, err := conn.ClientGetName(ctx).Result(); got != "worker-7" || err != nil {
		return fmt.Errorf("CLIENT GETNAME: expected worker-7, got %q, %v", got, err)
	}
	return nil
}
