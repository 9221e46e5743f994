package conf

import (
	"fmt"
	"testing"
)

func TestNetworks(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1": "10.0.0.1/32", "10.1.2.3/8": "10.0.0.0/8", "::1": "::1/128", "2001:db8::5/32": "2001:db8::/32",
		"::ffff:10.0.0.1": "10.0.0.1/32",
		"0.0.0.0/0":       "0.0.0.0/0", "": "", "host": "", "10.0.0.0/33": "", "10.0.0.1:6379": "", "fe80::1%eth0": "",
		"::ffff:10.0.0.0/104": "", "off": "",
	} {
		err := checkNetwork(text)
		got := Config{ProxyProtocol: []string{text}}.Balancers()
		if (err == nil) != (want != "") || want != "" && fmt.Sprint(got) != "["+want+"]" {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
}
