package proxyproto

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
)

const (
	v4 = "\x21\x11\x00\x0c\x0a\x00\x00\x05\x0a\x00\x00\x01\x04\xd2\x18\xeb"
	v6 = "\x21\x21\x00\x24\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x04\xd2\x18\xeb"
)

func TestRead(t *testing.T) {
	for _, c := range []struct {
		header, want string
		err          error
	}{
		{"PROXY TCP4 10.0.0.5 10.0.0.1 1234 6379\r\n", "10.0.0.5:1234", nil},
		{"PROXY TCP6 2001:db8::5 ::1 1234 6379\r\n", "[2001:db8::5]:1234", nil},
		{"PROXY TCP4 10.0.0.5 10.0.0.1 0 6379\r\n", "10.0.0.5:0", nil},
		{"PROXY UNKNOWN\r\n", "", nil},
		{"PROXY UNKNOWN whatever else\r\n", "", nil},
		{signature + v4, "10.0.0.5:1234", nil},
		{signature + v6, "[2001:db8::5]:1234", nil},
		{signature + strings.Replace(v4, "\x0c", "\x0f", 1) + "\x04\x00\x00", "10.0.0.5:1234", nil},
		// The following headers name no client.
		{LocalHeader, "", nil},
		{signature + "\x20\x11\x00\x01x", "", nil},
		{signature + "\x21\x31\x00\x02xx", "", nil}, // a unix socket
		{signature + "\x21\x00\x00\x00", "", nil},

		{"PING\r\n", "", ErrNoHeader},
		{"*1\r\n$4\r\nPING\r\n", "", ErrNoHeader},
		{"PROXY TCP4 10.0.0.5 10.0.0.1 1234\r\n", "", ErrNoHeader},
		{"PROXY TCP4 10.0.0.5 10.0.0.1 1234 65536\r\n", "", ErrNoHeader},
		{"PROXY TCP4 ::1 ::1 1 1\r\n", "", ErrNoHeader},
		{"PROXY TCP6 10.0.0.5 10.0.0.1 1 1\r\n", "", ErrNoHeader},
		{"PROXY TCP6 fe80::1%\x1b[2J ::1 1 1\r\n", "", ErrNoHeader},
		{"PROXY INFO\r\n", "", ErrNoHeader},
		{"PROXY " + strings.Repeat("x", 200), "", ErrNoHeader},
		{signature + "\x11\x11\x00\x0c" + strings.Repeat("x", 12), "", ErrNoHeader},
		{signature + "\x22\x11\x00\x0c" + strings.Repeat("x", 12), "", ErrNoHeader},
		{signature + "\x21\x11\x00\x0b" + strings.Repeat("x", 11), "", ErrNoHeader},
		{signature + "\x21\x11\xff\xff" + strings.Repeat("x", 70000), "", ErrNoHeader},
		{"\r\n\r\nPING\r\n", "", ErrNoHeader},

		{"", "", io.EOF},
		{"PROXY TCP4 10.", "", io.EOF},
		{signature + v4[:9], "", io.ErrUnexpectedEOF},
	} {
		in := strings.NewReader(c.header)
		got, err := Read(in)
		if text := addrText(got); text != c.want || err != c.err {
			t.Errorf("%q: %s, %v; want %s, %v", c.header, text, err, c.want, c.err)
		}
		if err == nil && in.Len() > 0 {
			t.Errorf("%q: %d bytes are left", c.header, in.Len())
		}
	}
}

func addrText(addr net.Addr) string {
	if addr == nil {
		return ""
	}
	return addr.String()
}

// FuzzRead checks that for any input, Read reads only a header, and none of the client's bytes
// after it.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n", "PROXY UNKNOWN\r\n", signature + v4,
		signature + v6, LocalHeader, "PING"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, header []byte) {
		in := bytes.NewReader(append(header, "*1\r\n"...))
		before := in.Len()
		addr, err := Read(in)
		read := before - in.Len()
		if read > len(signature)+4+maxBinary || addr != nil && err != nil {
			t.Fatalf("%q: %d bytes, %v, %v", header, read, addr, err)
		}
		if err != nil {
			return
		}
		again, err := Read(bytes.NewReader(append(header, "*1\r\n"...)[:read]))
		if err != nil || addrText(again) != addrText(addr) {
			t.Fatalf("%q: %v, and without what is behind it %v, %v", header, addr, again, err)
		}
		if tcp, ok := addr.(*net.TCPAddr); addr != nil && (!ok || tcp.Zone != "") {
			t.Fatalf("%q: %v", header, addr)
		}
	})
}

func TestIsIn(t *testing.T) {
	networks := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
	for addr, want := range map[string]bool{"10.1.2.3:1": true, "[::ffff:10.1.2.3]:1": true, "11.0.0.1:1": false,
		"[2001:db8::1]:1": true, "[::1]:1": false} {
		if got := IsIn(networks, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
	if IsIn(networks, &net.UnixAddr{Name: "x"}) || IsIn(nil, &net.TCPAddr{}) {
		t.Error("an address that is in none")
	}
}
