//go:build integration

package messages

import (
	"bytes"
	"errors"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// rawClient is a client of a conversation. It reads raw bytes.
type rawClient struct{ net.Conn }

// readReplies returns a client's replies until no reply arrives for quietTime, or isEnough returns
// true.
func (p rawClient) readReplies(t *testing.T, quietTime time.Duration, isEnough func(replies []byte) bool) []byte {
	t.Helper()
	var replies []byte
	buf := make([]byte, 64<<10)
	for !isEnough(replies) {
		_ = p.SetReadDeadline(time.Now().Add(quietTime))
		n, err := p.Read(buf)
		replies = append(replies, buf[:n]...)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return replies
		case err != nil:
			return append(replies, "<end>"...)
		}
	}
	return replies
}

// quietTime is the time without a reply after which the replies of a client are complete.
const quietTime = 100 * time.Millisecond

// replyLimit limits the wait for a reply that must come.
const replyLimit = 5 * time.Second

// conversations holds the commands of the clients a, b and c, in order; each client has its own
// connection. The commands avoid differences between versions.
var conversations = map[string]string{
	"RESP2": `a SUBSCRIBE x|b PUBLISH x 1|a GET lock:k|a CLIENT ID|a FOO|a GET|a PING|a PING hi|a MULTI|a HELLO 3|a SUBSCRIBE|a SUBSCRIBE x y y|b PUBLISH y 2
		a UNSUBSCRIBE zz x|b PUBLISH x 3|b PUBLISH y 4|a UNSUBSCRIBE|b PUBLISH y 5|a PING|a UNSUBSCRIBE|a PUNSUBSCRIBE p|a SUNSUBSCRIBE|a SET lock:k v|a GET lock:k|a QUIT`,
	"patterns": `a PSUBSCRIBE n?ws.*|a SUBSCRIBE news.art|b PUBLISH news.art 1|b PUBLISH nows.x 2|b PUBLISH new 3|a PUNSUBSCRIBE n?ws.*|b PUBLISH news.art 4
		a PSUBSCRIBE * *|b PUBLISH any 5|a RESET|b PUBLISH news.art 6|a GET lock:k`,
	"shards": `a SSUBSCRIBE s|a SUBSCRIBE s|b SPUBLISH s 1|b PUBLISH s 2|a SSUBSCRIBE s t|a SUNSUBSCRIBE t|b SPUBLISH t 3|a UNSUBSCRIBE|a PING|a SUNSUBSCRIBE|a PING|b SPUBLISH s`,
	"RESP3": `a HELLO 3|a SUBSCRIBE x|b PUBLISH x 1|a PUBLISH x own|a GET lock:k|a PING|a PSUBSCRIBE x|b PUBLISH x 2|a SET lock:k 1|a HELLO 2|a GET lock:k|b PUBLISH x 3|a PING
		a UNSUBSCRIBE|a PUNSUBSCRIBE|a UNSUBSCRIBE|a HELLO 3|a UNSUBSCRIBE|a SUBSCRIBE x|a RESET|b PUBLISH x 4|a PING`,
	"replies off": `a CLIENT REPLY OFF|a SUBSCRIBE x|b PUBLISH x 1|a PING|a UNSUBSCRIBE|a CLIENT REPLY ON|a CLIENT REPLY SKIP|a SUBSCRIBE x|b PUBLISH x 2|a RESET
		c HELLO 3|c SUBSCRIBE x|c CLIENT REPLY OFF|c PUBLISH x 3|b PUBLISH x 4|c PING|c CLIENT REPLY ON`,
	"PUBSUB": `a SUBSCRIBE x|b PUBSUB CHANNELS|b PUBSUB NUMSUB x y x|b PUBSUB NUMPAT|a PSUBSCRIBE p*|c PSUBSCRIBE p*|b PUBSUB NUMPAT|a SSUBSCRIBE s|b PUBSUB SHARDCHANNELS
		b PUBSUB SHARDNUMSUB s x|b PUBSUB SHARDNUMSUB|b PUBSUB NUMSUB|b PUBSUB CHANNELS y|b PUBSUB CHANNELS [x]|b PUBSUB FOO|b PUBSUB|b PUBSUB HELP|b PUBSUB NUMPAT 1|b PUBSUB CHANNELS a b|b PUBLISH x|b PUBLISH x 1 2
		a QUIT|b PUBSUB CHANNELS|b PUBSUB NUMSUB x`,
	"transactions": `a SUBSCRIBE x|b MULTI|b SET lock:t 1|b PUBLISH x in|b PUBLISH x|b EXEC|b MULTI|b PUBLISH x again|b SET lock:t 2|b SPUBLISH x|b DISCARD|b MULTI|b PUBLISH x alone|b EXEC|b MULTI|b PUBLISH x no|b DISCARD`,
	"scripts": `a SUBSCRIBE x|b SET lock:s 1|b EVAL "redis.call('publish','x','of a script') return redis.call('del',KEYS[1])" 1 lock:s|b EVAL "redis.call('publish','x') return 1" 1 lock:s
		b EVAL "if redis.call('exists',KEYS[1]) == 1 then redis.call('publish','x','no') end return 0" 1 lock:s|b EVAL "redis.call('publish','x','1') redis.call('publish','x','2') return 2" 1 lock:s|b EVAL "return redis.call('subscribe','x')" 1 lock:s`,
}

// TestRepliesOfRedis checks that the proxy's replies in whole conversations are, byte for byte, the
// replies of a Redis 7.0.
func TestRepliesOfRedis(t *testing.T) {
	f, redisServer := start(t, 1), kit.StartRedis(t)
	for name, text := range conversations {
		t.Run(name, func(t *testing.T) {
			proxyClients, redisClients := map[string]rawClient{}, map[string]rawClient{}
			for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '|' || r == '\n' }) {
				sender, command, _ := strings.Cut(strings.TrimSpace(line), " ")
				for addr, clients := range map[string]map[string]rawClient{f.Proxies[0].Addr(): proxyClients, redisServer.Addr(): redisClients} {
					if _, ok := clients[sender]; !ok {
						conn, err := net.DialTimeout("tcp", addr, kit.WaitLimit)
						kit.Must(t, err)
						t.Cleanup(func() { _ = conn.Close() })
						clients[sender] = rawClient{conn}
					}
					_, _ = clients[sender].Write([]byte(command + "\r\n"))
				}
				var firstReply []byte
				if name != "replies off" {
					firstReply = redisClients[sender].readReplies(t, replyLimit, func(got []byte) bool { return len(got) > 0 })
				}
				for name := range proxyClients {
					want := redisClients[name].readReplies(t, quietTime, func([]byte) bool { return false })
					if name == sender {
						want = append(firstReply, want...)
					}
					isSame := func(got []byte) bool {
						return bytes.Equal(versions.ReplaceAll(got, nil), versions.ReplaceAll(want, nil))
					}
					if got := proxyClients[name].readReplies(t, 10*time.Second, func(got []byte) bool {
						return len(want) == 0 ||
							isSame(got)
					}); !isSame(got) {
						t.Fatalf("%s: %s gets\n%q, want\n%q", line, name, got, want)
					}
				}
			}
			for name := range proxyClients { // no further replies arrive
				if got := proxyClients[name].readReplies(t, 2*quietTime, func([]byte) bool { return false }); len(bytes.TrimSuffix(got,
					[]byte("<end>"))) > 0 {
					t.Errorf("at the end %s gets %q", name, got)
				}
			}
		})
	}
}

// versions matches the versions and IDs in the reply to HELLO.
var versions = regexp.MustCompile(`\$[56]\r\n7\.[0-9.]+\r\n|id\r\n:[0-9]+`)

// TestRedisson sends the commands of a Redisson client that waits for a lock at one proxy. The
// client is notified when the holder releases the lock at the other proxy. The waiter gets exactly
// one message. A release after which the holder still holds the lock sends no message.
func TestRedisson(t *testing.T) {
	const takeScript = "if (redis.call('exists', KEYS[1]) == 0) then redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; " +
		"if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; " +
		"return redis.call('pttl', KEYS[1]);"
	const release = "if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then return nil; end; local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1); " +
		"if (counter > 0) then redis.call('pexpire', KEYS[1], ARGV[2]); return 0; else redis.call('del', KEYS[1]); redis.call('publish', KEYS[2], ARGV[1]); return 1; end; return nil;"
	f := start(t, 2)
	const lock, channel = "lock:mine", "redisson_lock__channel:{lock:mine}"
	owner, waiter := kit.Connect(t, f.Proxies[0]), kit.Connect(t, f.Proxies[1])
	takeLock := func(c *redistest.Client, holder string) any {
		return kit.Do(t, c, "EVAL", takeScript, "1", lock, "30000", holder)
	}
	releaseLock := func(c *redistest.Client, holder string) any {
		return kit.Do(t, c, "EVAL", release, "2", lock, channel, "0", "30000", holder)
	}
	for range 20 {
		if got := takeLock(owner, "one:1"); got != nil {
			t.Fatalf("%v", got)
		}
		takeLock(owner, "one:1") // takes the lock a second time
		if ttl, isHeld := takeLock(waiter, "two:1").(int64); !isHeld || ttl <= 0 {
			t.Fatalf("%v", ttl)
		}
		messages := connectSubscriber(t, f.Proxies[1], channel)
		if got := releaseLock(waiter, "two:1"); got != nil { // the waiter does not hold the lock
			t.Fatalf("%v", got)
		}
		if got := releaseLock(owner, "one:1"); got != int64(0) {
			t.Fatalf("%v", got)
		}
		wantNoMessage(t, messages)
		if got := releaseLock(owner, "one:1"); got != int64(1) {
			t.Fatalf("%v", got)
		}
		wantNext(t, messages, []any{"message", channel, "0"})
		if got := takeLock(waiter, "two:1"); got != nil {
			t.Fatalf("%v", got)
		}
		wantNext(t, messages, []any{"unsubscribe", channel, int64(0)}, "UNSUBSCRIBE", channel)
		kit.Want(t, messages, "PONG", "PING")
		if got := releaseLock(waiter, "two:1"); got != int64(1) {
			t.Fatalf("%v", got)
		}
	}
}
