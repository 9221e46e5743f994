package loop

import (
	"context"
	"errors"
	"net/netip"
	"testing"
)

// fakeMachine returns a machine with two addresses, and a resolver that knows four names.
func fakeMachine() Machine {
	names := map[string][]string{
		"localhost": {"127.0.0.1", "::1"}, "me": {"10.0.0.7"}, "other": {"10.0.0.8"}, "both": {"10.0.0.8", "10.0.0.7"},
	}
	parse := func(texts []string) (all []netip.Addr) {
		for _, text := range texts {
			all = append(all, netip.MustParseAddr(text))
		}
		return all
	}
	return Machine{
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			if names[host] == nil {
				return nil, errors.New("no such host")
			}
			return parse(names[host]), nil
		},
		InterfaceAddrs: func() ([]netip.Addr, error) { return parse([]string{"127.0.0.1", "::1", "10.0.0.7", "fe80::7"}), nil },
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		target, listen string
		loop           bool
	}{
		{"127.0.0.1:6380", "127.0.0.1:6380", true},
		{"127.0.0.1:6379", "127.0.0.1:6380", false},
		{"localhost:6380", "127.0.0.1:6380", true},
		{"localhost:6380", "localhost:6380", true},
		{"0.0.0.0:6380", "127.0.0.1:6380", true},
		{"[::]:6380", "127.0.0.1:6380", true},
		{"127.0.0.1:6380", "0.0.0.0:6380", true},
		{"127.0.0.5:6380", ":6380", true},
		{"127.0.0.5:6380", "127.0.0.1:6380", false},
		{"me:6380", ":6380", true},
		{"me:6380", "127.0.0.1:6380", false},
		{"me:6380", "10.0.0.7:6380", true},
		{"0.0.0.0:6380", "10.0.0.7:6380", true},
		{"both:6380", "[::]:6380", true},
		{"[::ffff:10.0.0.7]:6380", "0.0.0.0:6380", true},
		{"[fe80::7%eth0]:6380", "[::]:6380", true},
		{"other:6380", "0.0.0.0:6380", false},
		{"10.0.0.8:6380", "0.0.0.0:6380", false},
		{"nobody:6380", "0.0.0.0:6380", false},
		{"localhost:06380", "127.0.0.1:6380", true},
		{"localhost:0", "127.0.0.1:0", false},
		{"/run/redis.sock", "127.0.0.1:6380", false},
	} {
		err := fakeMachine().Check(t.Context(), "upstream", test.target, test.listen)
		if _, ok := errors.AsType[*Error](err); ok != test.loop {
			t.Errorf("target %s, listening on %s: %v", test.target, test.listen, err)
		}
	}
}

func TestErrorText(t *testing.T) {
	err := fakeMachine().Check(t.Context(), "upstream", "localhost:6380", "0.0.0.0:6380")
	if err == nil || err.Error() != "upstream: localhost:6380 is this proxy itself, which listens on 0.0.0.0:6380" {
		t.Error(err)
	}
}

// TestUnknownMachine checks that Check returns no error without the machine's addresses.
func TestUnknownMachine(t *testing.T) {
	m := fakeMachine()
	m.InterfaceAddrs = func() ([]netip.Addr, error) { return nil, errors.New("not available") }
	if err := m.Check(t.Context(), "upstream", "localhost:6380", ":6380"); err != nil {
		t.Error(err)
	}
}

func TestThisMachine(t *testing.T) {
	if err := ThisMachine().Check(t.Context(), "master", "localhost:6380", "127.0.0.1:6380"); err == nil {
		t.Error("localhost is not this machine")
	}
}
