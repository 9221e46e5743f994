package proxyproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

const (
	// signature begins a header of version 2, linePrefix a header of version 1.
	signature  = "\r\n\r\n\x00\r\nQUIT\n"
	linePrefix = "PROXY "
	// maxLine is the length of the longest header of version 1, in bytes.
	maxLine = 107
	// maxBinary limits the bytes that follow the first 16 bytes of a header of version 2:
	// addresses, and other data of the balancer, such as the client's certificate.
	maxBinary = 4 << 10
)

// ErrNoHeader reports that the header is missing or invalid.
var ErrNoHeader = errors.New("no PROXY protocol header")

// LocalHeader is the header of a load balancer that connects for itself.
const LocalHeader = signature + "\x20\x00\x00\x00"

// Read reads a header, and no byte after it. It returns the client's address; nil if the address is
// unknown, or if the balancer connects for itself. The error is ErrNoHeader, or an error of the
// reader.
func Read(r io.Reader) (net.Addr, error) {
	var first [1]byte
	if _, err := io.ReadFull(r, first[:]); err != nil {
		return nil, err
	}
	switch first[0] {
	case linePrefix[0]:
		return readLine(r)
	case signature[0]:
		return readBinary(r)
	}
	return nil, ErrNoHeader
}

// expect reads the expected text byte by byte, so that it stops at the first different byte.
func expect(r io.Reader, text string) error {
	var b [1]byte
	for i := range len(text) {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return err
		}
		if b[0] != text[i] {
			return ErrNoHeader
		}
	}
	return nil
}

// readLine reads the rest of a header of version 1, byte by byte, because its length is unknown.
func readLine(r io.Reader) (net.Addr, error) {
	if err := expect(r, linePrefix[1:]); err != nil {
		return nil, err
	}
	var b [1]byte
	line := []byte(linePrefix)
	for !bytes.HasSuffix(line, []byte("\r\n")) {
		if len(line) == maxLine {
			return nil, ErrNoHeader
		}
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return nil, err
		}
		line = append(line, b[0])
	}
	return parseLine(string(line[len(linePrefix) : len(line)-2]))
}

func parseLine(text string) (net.Addr, error) {
	words := strings.Split(text, " ")
	if words[0] == "UNKNOWN" {
		return nil, nil
	}
	if len(words) != 5 || words[0] != "TCP4" && words[0] != "TCP6" {
		return nil, ErrNoHeader
	}
	var addrs [2]netip.AddrPort
	for i := range addrs {
		ip, err := netip.ParseAddr(words[1+i])
		port, portErr := strconv.ParseUint(words[3+i], 10, 16)
		if err != nil || portErr != nil || ip.Is4() != (words[0] == "TCP4") || ip.Zone() != "" {
			return nil, ErrNoHeader
		}
		addrs[i] = netip.AddrPortFrom(ip, uint16(port))
	}
	return net.TCPAddrFromAddrPort(addrs[0]), nil
}

// readBinary reads the rest of a header of version 2.
func readBinary(r io.Reader) (net.Addr, error) {
	if err := expect(r, signature[1:]); err != nil {
		return nil, err
	}
	var head [4]byte // version and command, family and transport, length
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint16(head[2:])
	if head[0] != 0x20 && head[0] != 0x21 || size > maxBinary {
		return nil, ErrNoHeader
	}
	rest := make([]byte, size)
	if _, err := io.ReadFull(r, rest); err != nil {
		return nil, err
	}
	if head[0] == 0x20 { // LOCAL: the balancer connects for itself
		return nil, nil
	}
	switch head[1] {
	case 0x11:
		return sourceAddr(rest, 4)
	case 0x21:
		return sourceAddr(rest, 16)
	}
	return nil, nil // protocols other than TCP over IPv4 or IPv6 count as unknown
}

// sourceAddr returns the client's address from two addresses of this size and two ports.
func sourceAddr(rest []byte, size int) (net.Addr, error) {
	if len(rest) < 2*size+4 {
		return nil, ErrNoHeader
	}
	ip, _ := netip.AddrFromSlice(rest[:size])
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, binary.BigEndian.Uint16(rest[2*size:]))), nil
}

// IsIn reports whether an address is in one of the networks. It returns false for an address that
// is not TCP.
func IsIn(networks []netip.Prefix, addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return false
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(ip) })
}
