// Package loop detects settings by which a proxy would connect to its own listen address. A proxy
// that is its own upstream would send itself each command again, over a new connection each time,
// until no descriptor is left. The package does not detect loops through other proxies. PROXY PATH
// on the connection detects them.
package loop

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// Machine resolves hosts and knows the addresses of a machine. The zero value is not usable: see
// [ThisMachine].
type Machine struct {
	// Resolve returns the addresses of a host.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// InterfaceAddrs returns the addresses of this machine's interfaces.
	InterfaceAddrs func() ([]netip.Addr, error)
}

// ThisMachine returns this machine.
func ThisMachine() Machine {
	return Machine{
		Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
		InterfaceAddrs: interfaceAddresses,
	}
}

// Error reports that a setting names the address that the proxy itself listens on.
type Error struct {
	// Setting is the name of the setting. Target is the address that the setting names, and Listen
	// the listen address, both host:port.
	Setting, Target, Listen string
}

// Error returns a sentence about the setting.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s is this proxy itself, which listens on %s", e.Setting, e.Target, e.Listen)
}

// Check returns an [*Error] if a proxy that listens on listen would reach itself at target, the
// host:port that a setting names. It accepts a host that cannot be resolved now.
func (m Machine) Check(ctx context.Context, setting, target, listen string) error {
	host, port, err := net.SplitHostPort(target)
	listenHost, listenPort, listenErr := net.SplitHostPort(listen)
	if err != nil || listenErr != nil || !samePort(port, listenPort) {
		return nil
	}
	own, err := m.InterfaceAddrs()
	if err != nil {
		return nil
	}
	if reaches(m.resolveAddrs(ctx, host), m.resolveAddrs(ctx, listenHost), own) {
		return &Error{setting, target, listen}
	}
	return nil
}

// samePort reports whether two ports are equal. Port 0 equals no port, because the system has not
// chosen it yet.
func samePort(a, b string) bool {
	m, errA := strconv.ParseUint(a, 10, 16)
	n, errB := strconv.ParseUint(b, 10, 16)
	return errA == nil && errB == nil && m == n && n != 0
}

// resolveAddrs returns the addresses of a host. An empty host has the unspecified address, as in
// listening. A host that cannot be resolved has no addresses.
func (m Machine) resolveAddrs(ctx context.Context, host string) []netip.Addr {
	if host == "" {
		return []netip.Addr{netip.IPv6Unspecified()}
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}
	}
	all, err := m.Resolve(ctx, host)
	if err != nil {
		return nil
	}
	return all
}

// reaches reports whether a connection to one of the targets reaches a listener on one of the
// addresses in listenAddrs. A connection to the unspecified address reaches this machine.
func reaches(targets, listenAddrs, interfaceAddrs []netip.Addr) bool {
	isOwn := func(a netip.Addr) bool {
		return a.IsUnspecified() || a.IsLoopback() ||
			slices.ContainsFunc(interfaceAddrs, func(o netip.Addr) bool { return canonicalAddr(o) == a })
	}
	for _, target := range targets {
		target = canonicalAddr(target)
		for _, l := range listenAddrs {
			switch l = canonicalAddr(l); {
			case l.IsUnspecified() && isOwn(target):
				return true
			case target == l, target.IsUnspecified() && (l.IsLoopback() || isOwn(l)):
				return true
			}
		}
	}
	return false
}

// canonicalAddr returns an address without a zone, and IPv4 in IPv6 as IPv4.
func canonicalAddr(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func interfaceAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("cannot read the addresses of this machine: %w", err)
	}
	var addrs []netip.Addr
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			addrs = append(addrs, prefix.Addr())
		}
	}
	return addrs, nil
}
