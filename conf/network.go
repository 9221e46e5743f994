package conf

import (
	"errors"
	"net/netip"
)

var errNetwork = errors.New(`is no IP address, and no network such as "10.0.0.0/8"`)

// network says what is wrong with an address or a network.
func network(text string) error {
	_, err := readNetwork(text)
	return err
}

// readNetwork takes an address for the network that has no other.
func readNetwork(text string) (netip.Prefix, error) {
	ip, err := netip.ParseAddr(text)
	if err == nil && ip.Zone() == "" {
		ip = ip.Unmap()
		return netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil || prefix.Addr().Is4In6() {
		return netip.Prefix{}, errNetwork
	}
	return prefix.Masked(), nil
}

// Balancers are the networks of ProxyProtocol.
func (c Config) Balancers() []netip.Prefix {
	var all []netip.Prefix
	for _, text := range c.ProxyProtocol {
		if prefix, err := readNetwork(text); err == nil { // as it is in a valid configuration
			all = append(all, prefix)
		}
	}
	return all
}
