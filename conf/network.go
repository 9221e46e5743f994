package conf

import (
	"errors"
	"net/netip"
)

var errNetwork = errors.New(`is neither an IP address nor a network such as "10.0.0.0/8"`)

// checkNetwork returns an error if the text is neither an IP address nor a network.
func checkNetwork(text string) error {
	_, err := parseNetwork(text)
	return err
}

// parseNetwork parses a network. A single address is the network of this address alone.
func parseNetwork(text string) (netip.Prefix, error) {
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

// Balancers returns the networks of ProxyProtocol.
func (c Config) Balancers() []netip.Prefix {
	var all []netip.Prefix
	for _, text := range c.ProxyProtocol {
		if prefix, err := parseNetwork(text); err == nil { // always, in a valid configuration
			all = append(all, prefix)
		}
	}
	return all
}
