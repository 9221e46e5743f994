// Package loop finds out whether an address that a proxy is to connect to is the one that it
// listens on. A proxy that is its own upstream sends itself each command again, over a new
// connection each time, until no descriptor is left. What leads back over another proxy is not seen
// here: that is asked on the connection (PROXY PATH).
package loop

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// Machine is what addresses are judged by. The zero value is not usable: see [Here].
type Machine struct {
	// Resolve gives the addresses of a host.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Own gives the addresses of this machine's interfaces.
	Own func() ([]netip.Addr, error)
}

// Here is this machine.
func Here() Machine {
	return Machine{
		Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
		Own: interfaceAddresses,
	}
}

// Error says that a setting names the address that the proxy itself listens on.
type Error struct {
	// Setting is the name of the setting, Target what it names and Listen the address listened on,
	// both host:port.
	Setting, Target, Listen string
}

// Error is a sentence about the setting.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s is this proxy itself, which listens on %s", e.Setting, e.Target, e.Listen)
}

// Check returns an [*Error] where target, the host:port that a setting names, is what a proxy that
// listens on listen would reach itself by. A host that cannot be resolved now is let pass.
func (m Machine) Check(ctx context.Context, setting, target, listen string) error {
	host, port, err := net.SplitHostPort(target)
	listenHost, listenPort, listenErr := net.SplitHostPort(listen)
	if err != nil || listenErr != nil || !samePort(port, listenPort) {
		return nil
	}
	own, err := m.Own()
	if err != nil {
		return nil
	}
	if leads(m.addresses(ctx, host), m.addresses(ctx, listenHost), own) {
		return &Error{setting, target, listen}
	}
	return nil
}

// samePort compares two numbers of ports, of which 0 is none yet.
func samePort(a, b string) bool {
	m, errA := strconv.ParseUint(a, 10, 16)
	n, errB := strconv.ParseUint(b, 10, 16)
	return errA == nil && errB == nil && m == n && n != 0
}

// addresses are those of a host: all, unspecified, for an empty one, as in listening; none if it
// cannot be resolved.
func (m Machine) addresses(ctx context.Context, host string) []netip.Addr {
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

// leads reports whether connecting to one of the targets reaches what listens on one of the
// addresses listened on. To connect to the unspecified address is to connect to this machine.
func leads(targets, listened, own []netip.Addr) bool {
	here := func(a netip.Addr) bool {
		return a.IsUnspecified() || a.IsLoopback() || slices.ContainsFunc(own, func(o netip.Addr) bool { return plain(o) == a })
	}
	for _, target := range targets {
		target = plain(target)
		for _, l := range listened {
			switch l = plain(l); {
			case l.IsUnspecified() && here(target):
				return true
			case target == l, target.IsUnspecified() && (l.IsLoopback() || here(l)):
				return true
			}
		}
	}
	return false
}

// plain is an address without the forms that mean the same.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func interfaceAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("addresses of this machine: %w", err)
	}
	var own []netip.Addr
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, prefix.Addr())
		}
	}
	return own, nil
}
