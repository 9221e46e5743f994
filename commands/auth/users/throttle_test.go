package users

import (
	"fmt"
	"net"
	"testing"
	"time"
)

func tcpAddr(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 1} }

// TestThrottle checks that each failed login doubles the pause of its address, up to a limit. Other
// addresses do not wait. throttle forgets failures after a while.
func TestThrottle(t *testing.T) {
	th, now, addr := newThrottle(), time.Unix(1000, 0), tcpAddr("10.0.0.1")
	for i, want := range []time.Duration{0, 50, 100, 200, 400, 800, 1000, 1000} {
		wait, ok := th.delay(now, addr, "app")
		if !ok || wait != want*time.Millisecond {
			t.Errorf("login %d waits %v, want %v ms", i, wait, want)
		}
		now = now.Add(wait)
		th.recordFailure(now, addr, "app")
	}
	for name, addr := range map[string]net.Addr{"another address": tcpAddr("10.0.0.2"), "IPv6": tcpAddr("2001:db8::1"),
		"a socket": &net.UnixAddr{Name: "x"}} {
		if wait, ok := th.delay(now, addr, "app"); wait != 0 || !ok {
			t.Errorf("%s waits %v", name, wait)
		}
	}
	if wait, _ := th.delay(now.Add(failureRetention+time.Second), addr, "app"); wait != 0 {
		t.Errorf("later it waits %v", wait)
	}
}

// TestThrottleQueue checks that simultaneous logins queue, and that throttle rejects a login
// that would wait too long. A /64 network of IPv6 counts as one address.
func TestThrottleQueue(t *testing.T) {
	th, now := newThrottle(), time.Unix(1000, 0)
	for range 10 {
		th.recordFailure(now, tcpAddr("2001:db8::1"), "app")
	}
	tried := 0
	for i := range 1000 {
		if _, ok := th.delay(now, tcpAddr(fmt.Sprintf("2001:db8::%x", i+2)), "app"); ok {
			tried++
		}
	}
	if tried != 5 {
		t.Errorf("%d of 1000 logins are tried within 5 s", tried)
	}
}

// TestThrottleBucketLimit checks that the number of remembered addresses is limited.
func TestThrottleBucketLimit(t *testing.T) {
	th, now := newThrottle(), time.Unix(1000, 0)
	for i := range 3 * maxBuckets {
		th.recordFailure(now, tcpAddr(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)), fmt.Sprint(i))
	}
	if wait, _ := th.delay(now, tcpAddr("10.0.0.0"), "0"); wait != 0 {
		t.Error("the oldest is remembered")
	}
	last := 3*maxBuckets - 1
	if wait, _ := th.delay(now, tcpAddr(fmt.Sprintf("10.%d.%d.%d", last>>16, last>>8&255, last&255)),
		fmt.Sprint(last)); wait == 0 {
		t.Error("the newest is forgotten")
	}
}
