//go:build integration

package messages

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestPublishRightAfterSubscribe publishes a message at one proxy right after a subscription was
// confirmed at another proxy, a thousand times. Each message is delivered. Each subscriber is the
// only subscriber of its proxy.
func TestPublishRightAfterSubscribe(t *testing.T) {
	f := start(t, 2)
	publisher := kit.Connect(t, f.Proxies[0])
	for i := range 1000 {
		channel := "channel:" + strconv.Itoa(i)
		client := connectSubscriber(t, f.Proxies[1], channel)
		kit.Want(t, publisher, int64(1), "PUBLISH", channel, "at once")
		wantNext(t, client, []any{"message", channel, "at once"})
		kit.Must(t, client.Close())
	}
}

// startPublishers lets clients publish n numbered messages each, one after the other, through the
// proxies in turn. If onPublish is not nil, each client calls it after each message.
func startPublishers(t *testing.T, proxies []*harness.Proxy, publishers, n int, onPublish func(published int)) (wait func()) {
	t.Helper()
	var wg sync.WaitGroup
	for p := range publishers {
		client := kit.Connect(t, proxies[p%len(proxies)])
		wg.Go(func() {
			for i := range n {
				reply, err := client.Do("PUBLISH", "numbers", fmt.Sprintf("%d %d", p, i))
				if _, isInt := reply.(int64); err != nil || !isInt {
					t.Errorf("publisher %d, message %d: %v, %v", p, i, reply, err)
					return
				}
				if onPublish != nil {
					onPublish(p*n + i)
				}
			}
		})
	}
	return wg.Wait
}

// wantNumbers fails the test unless n numbers of each publisher arrive once and in order.
func wantNumbers(t *testing.T, client *redistest.Client, publishers, n int) {
	t.Helper()
	next := make([]int, publishers)
	for range publishers * n {
		got, err := client.Receive()
		if err != nil {
			t.Errorf("%v, after %v", err, next)
			return
		}
		parts, _ := got.([]any)
		if len(parts) != 3 || parts[0] != "message" {
			t.Errorf("%v", got)
			return
		}
		publisher, number, _ := strings.Cut(parts[2].(string), " ")
		p, i := kit.ParseNumber(t, publisher), kit.ParseNumber(t, number)
		if i != next[p] {
			t.Errorf("publisher %d: message %d, want %d", p, i, next[p])
			return
		}
		next[p]++
	}
}

// TestKilledMasters kills two of five masters while several clients of two proxies publish
// 10,000 messages. Subscribers of both proxies get each message once, and the messages of one
// publisher in order.
func TestKilledMasters(t *testing.T) {
	f := start(t, 2)
	const clients, messagesPerClient = 8, 1250
	var subscribers sync.WaitGroup
	var subscriberClients []*redistest.Client
	for i := range 4 {
		client := connectSubscriber(t, f.Proxies[i%2], "numbers")
		subscriberClients = append(subscriberClients, client)
		subscribers.Go(func() { wantNumbers(t, client, clients, messagesPerClient) })
	}
	wait := startPublishers(t, f.Proxies, clients, messagesPerClient, func(published int) {
		switch published {
		case 300:
			kit.NoError(t, f.Masters[0].Kill())
		case messagesPerClient + 600:
			kit.NoError(t, f.Masters[3].Kill())
		}
	})
	wait()
	subscribers.Wait()
	for _, client := range subscriberClients {
		wantNoMessage(t, client)
	}
}

// TestDeliveryByStoppedProxy stops a proxy with subscribers for a while. Then the proxy delivers
// all messages of that time. If a master is stopped, no message is lost.
func TestDeliveryByStoppedProxy(t *testing.T) {
	f := start(t, 2)
	client := connectSubscriber(t, f.Proxies[1], "numbers")
	kit.Must(t, f.Proxies[1].Pause())
	// A proxy that is stopped for too long loses its subscriptions.
	startPublishers(t, f.Proxies[:1], 2, 20, nil)()
	kit.Must(t, f.Proxies[1].Continue())
	wantNumbers(t, client, 2, 20)
	kit.Must(t, f.Masters[2].Pause())
	startPublishers(t, f.Proxies[:1], 2, 200, nil)()
	wantNumbers(t, client, 2, 200)
	kit.Must(t, f.Masters[2].Continue())
	wantNoMessage(t, client)
}

// TestMessagesWithoutMajority checks that, without a majority, no message is published, and no
// subscription is confirmed. Subscribers that may miss messages are disconnected, so that they do
// not wait for ever.
func TestMessagesWithoutMajority(t *testing.T) {
	redistest.SkipShort(t)
	f := start(t, 2)
	client, publisher := connectSubscriber(t, f.Proxies[1], "channel"), kit.Connect(t, f.Proxies[0])
	kit.Want(t, publisher, int64(1), "PUBLISH", "channel", "one")
	wantNext(t, client, []any{"message", "channel", "one"})
	for _, master := range f.Masters[:2] {
		kit.Must(t, master.Kill())
	}
	kit.Want(t, publisher, int64(1), "PUBLISH", "channel", "two")
	wantNext(t, client, []any{"message", "channel", "two"})
	wantNoMessage(t, client)
	kit.Must(t, f.Masters[2].Kill())
	wantEnd(t, client)
	if reply := kit.Do(t, publisher, "PUBLISH", "channel", "three"); !strings.HasPrefix(kit.ReplyText(reply),
		"NOQUORUM 2 of 5 masters answered, 3 needed: ") {
		t.Errorf("PUBLISH: %v", reply)
	}
	otherClient := kit.Connect(t, f.Proxies[1])
	if reply := kit.Do(t, otherClient, "SUBSCRIBE", "channel"); !strings.HasPrefix(kit.ReplyText(reply),
		"NOQUORUM 2 of 5 masters answered, 3 needed: ") {
		t.Errorf("SUBSCRIBE: %v", reply)
	}
	kit.Want(t, otherClient, "PONG", "PING") // the client is not subscribed
	kit.Must(t, f.Masters[2].RestartWithData())
	kit.Eventually(t, func() error {
		reply, err := otherClient.Do("SUBSCRIBE", "channel")
		if _, isError := reply.(redistest.RespError); isError {
			return fmt.Errorf("%v", reply)
		}
		return err
	})
}

// TestConnectionLossInTurn breaks the proxy's pub/sub connections to three of five masters in
// turn, and lets each of them recover. A subscriber keeps its connection as long as three masters
// have been connected without a break since its subscription. After the third break, the subscriber
// loses its connection, although all masters are connected again.
func TestConnectionLossInTurn(t *testing.T) {
	f := start(t, 1)
	client, publisher := connectSubscriber(t, f.Proxies[0], "channel"), kit.Connect(t, f.Proxies[0])
	for i, master := range f.Masters[:3] {
		kit.Must(t, kit.SendToMaster(master, "CLIENT", "KILL", "TYPE", "pubsub"))
		kit.Eventually(t, func() error {
			reply, err := kit.QueryDatabase(master, "0", "PUBSUB", "NUMSUB", "redlock-proxy:messages:")
			if err == nil && fmt.Sprint(reply) != "[redlock-proxy:messages: 1]" {
				err = fmt.Errorf("%v", reply)
			}
			return err
		})
		if i < 2 {
			kit.Want(t, publisher, int64(1), "PUBLISH", "channel", "again")
			wantNext(t, client, []any{"message", "channel", "again"})
		}
	}
	wantEnd(t, client)
	client = connectSubscriber(t, f.Proxies[0], "channel")
	kit.Want(t, publisher, int64(1), "PUBLISH", "channel", "anew")
	wantNext(t, client, []any{"message", "channel", "anew"})
}

// TestForeignMessages checks that the proxy ignores messages that other programs publish on the
// masters' channel.
func TestForeignMessages(t *testing.T) {
	f := start(t, 1)
	client, publisher := connectSubscriber(t, f.Proxies[0], "channel"), kit.Connect(t, f.Proxies[0])
	for _, master := range f.Masters {
		for _, text := range []string{"", "garbage", "1 0123456789abcdef m 0 0 0 0\n", "1 0123456789abcdef m 9 9 0 0\n",
			strings.Repeat("x", 1<<20)} {
			kit.Must(t, kit.SendToMaster(master, "PUBLISH", "redlock-proxy:messages:", text))
		}
	}
	kit.Want(t, publisher, int64(1), "PUBLISH", "channel", "message")
	wantNext(t, client, []any{"message", "channel", "message"})
	// This message is longer than any message of a proxy. The proxy closes its connection to the
	// master.
	for _, master := range f.Masters {
		kit.Must(t, kit.SendToMaster(master, "PUBLISH", "redlock-proxy:messages:", strings.Repeat("x", 3<<20)))
	}
	wantEnd(t, client)
	client = connectSubscriber(t, f.Proxies[0], "channel")
	kit.Want(t, publisher, int64(1), "PUBLISH", "channel", "message")
	wantNext(t, client, []any{"message", "channel", "message"})
}

// TestLongPatterns checks that the proxy refuses a whole PSUBSCRIBE if one of its patterns is too
// long.
func TestLongPatterns(t *testing.T) {
	client := kit.Connect(t, start(t, 1).Proxies[0])
	const limit = 1 << 10
	longest := strings.Repeat("*", limit)
	kit.WantPrefix(t, client, "PSUBSCRIBE a* "+longest+"*",
		"ERR pattern too long: the limit is 1024 bytes; use a shorter pattern")
	kit.WantPrefix(t, client, "PUBSUB NUMPAT", "0")
	wantNext(t, client, []any{"psubscribe", longest, int64(1)}, "PSUBSCRIBE", longest)
}

// TestSlowSubscriber checks that a subscriber that reads nothing is disconnected, and delays no
// other client.
func TestSlowSubscriber(t *testing.T) {
	f := start(t, 1)
	slowClient, fastClient, publisher := connectSubscriber(t, f.Proxies[0], "channel"), connectSubscriber(t, f.Proxies[0], "channel"),
		kit.Connect(t, f.Proxies[0])
	payload := strings.Repeat("p", 1<<20-1000)
	receivers := []any{}
	for range 80 {
		receivers = append(receivers, kit.Do(t, publisher, "PUBLISH", "channel", payload))
		wantNext(t, fastClient, []any{"message", "channel", payload})
		if receivers[len(receivers)-1] == any(int64(1)) {
			break
		}
		time.Sleep(10 * time.Millisecond) // the slow subscriber reads nothing in this time
	}
	if n := len(receivers); receivers[0] != any(int64(2)) || receivers[n-1] != any(int64(1)) || n < 33 {
		t.Errorf("receivers: %v", receivers)
	}
	for {
		if _, err := slowClient.Receive(); err != nil {
			kit.Must(t, checkConnectionEnded(err))
			break
		}
	}
	wantNoMessage(t, fastClient)
}

// TestParkedSubscriber checks that a subscriber that the proxy has parked, because it was silent,
// still gets messages. It is also disconnected when no majority remains.
func TestParkedSubscriber(t *testing.T) {
	redistest.SkipShort(t)
	f := start(t, 1)
	client, publisher := connectSubscriber(t, f.Proxies[0], "channel"), kit.Connect(t, f.Proxies[0])
	time.Sleep(5 * time.Second) // the time until the subscriber is parked
	kit.Want(t, publisher, int64(1), "PUBLISH", "channel", "message")
	wantNext(t, client, []any{"message", "channel", "message"})
	time.Sleep(5 * time.Second) // the time until the subscriber is parked
	for _, master := range f.Masters[:3] {
		kit.Must(t, master.Kill())
	}
	wantEnd(t, client)
	kit.Eventually(t, func() error { // the subscriber's session has ended
		info := fmt.Sprint(kit.Do(t, publisher, "INFO", "clients"))
		if !strings.Contains(info, "connected_clients:1\r\n") {
			return fmt.Errorf("%s", info)
		}
		return nil
	})
}
