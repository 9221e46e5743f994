package origin

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
	// signature begins a header of version 2, begin one of version 1.
	signature = "\r\n\r\n\x00\r\nQUIT\n"
	begin     = "PROXY "
	// maxLine is the longest header of version 1, in bytes.
	maxLine = 107
	// maxRest bounds what follows the first 16 bytes of one of version 2: addresses, and what else
	// the balancer tells of a client, such as its certificate.
	maxRest = 4 << 10
)

// ErrNoHeader says that there is no header, or none that can be read.
var ErrNoHeader = errors.New("no header of the PROXY protocol")

// Local is a header that says: this is nobody's connection but my own.
const Local = signature + "\x20\x00\x00\x00"

// Read reads a header, and no byte behind it. The address is that of the client; nil where the
// header says that it is not known, or that the balancer connects for itself. The error is
// ErrNoHeader, or of the reader.
func Read(r io.Reader) (net.Addr, error) {
	var first [1]byte
	if _, err := io.ReadFull(r, first[:]); err != nil {
		return nil, err
	}
	switch first[0] {
	case begin[0]:
		return readLine(r)
	case signature[0]:
		return readBinary(r)
	}
	return nil, ErrNoHeader
}

// expect reads what must be there, byte by byte, so that what is something else is seen at once.
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

// readLine reads the rest of version 1, byte by byte: where it ends is known only then.
func readLine(r io.Reader) (net.Addr, error) {
	if err := expect(r, begin[1:]); err != nil {
		return nil, err
	}
	var b [1]byte
	line := []byte(begin)
	for !bytes.HasSuffix(line, []byte("\r\n")) {
		if len(line) == maxLine {
			return nil, ErrNoHeader
		}
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return nil, err
		}
		line = append(line, b[0])
	}
	return parseLine(string(line[len(begin) : len(line)-2]))
}

func parseLine(text string) (net.Addr, error) {
	words := strings.Split(text, " ")
	if words[0] == "UNKNOWN" {
		return nil, nil
	}
	if len(words) != 5 || words[0] != "TCP4" && words[0] != "TCP6" {
		return nil, ErrNoHeader
	}
	var ends [2]netip.AddrPort
	for i := range ends {
		ip, err := netip.ParseAddr(words[1+i])
		port, portErr := strconv.ParseUint(words[3+i], 10, 16)
		if err != nil || portErr != nil || ip.Is4() != (words[0] == "TCP4") || ip.Zone() != "" {
			return nil, ErrNoHeader
		}
		ends[i] = netip.AddrPortFrom(ip, uint16(port))
	}
	return net.TCPAddrFromAddrPort(ends[0]), nil
}

// readBinary reads the rest of version 2.
func readBinary(r io.Reader) (net.Addr, error) {
	if err := expect(r, signature[1:]); err != nil {
		return nil, err
	}
	var head [4]byte // version and command, family and transport, length
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint16(head[2:])
	if head[0] != 0x20 && head[0] != 0x21 || size > maxRest {
		return nil, ErrNoHeader
	}
	rest := make([]byte, size)
	if _, err := io.ReadFull(r, rest); err != nil {
		return nil, err
	}
	if head[0] == 0x20 { // LOCAL
		return nil, nil
	}
	switch head[1] {
	case 0x11:
		return source(rest, 4)
	case 0x21:
		return source(rest, 16)
	}
	return nil, nil // neither TCP over IPv4 nor over IPv6: to be taken for unknown
}

// source takes the client from two addresses of this size and two ports.
func source(rest []byte, size int) (net.Addr, error) {
	if len(rest) < 2*size+4 {
		return nil, ErrNoHeader
	}
	ip, _ := netip.AddrFromSlice(rest[:size])
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, binary.BigEndian.Uint16(rest[2*size:]))), nil
}

// Among reports whether an address is in one of the networks. One that is not of TCP is in none.
func Among(networks []netip.Prefix, addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return false
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(ip) })
}
