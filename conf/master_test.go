package conf

import (
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestMasterURL(t *testing.T) {
	tests := []struct {
		url  string
		want error
	}{
		{"redis://host", nil},
		{"redis://host:6379", nil},
		{"redis://host:6379/", nil},
		{"redis://10.0.0.1:1", nil},
		{"redis://[::1]:6379", nil},
		{"redis://[fe80::1%25eth0]:6379", nil},
		{"redis://redis_1.service:6379", nil},
		{"redis://user:p%40ss%2Fw@host", nil},
		{"redis://:a,b@host", nil},
		{"rediss://host?skip_verify=true", nil},
		{"unix:///run/redis.sock", nil},
		{"unix:///run/a,b.sock", nil},
		{"unix://user:pass@/run/redis.sock", nil},
		{"", errScheme},
		{"host:6379", errScheme},
		{"a,b", errSeveralHosts},
		{"10.0.0.1:6379,10.0.0.2:6379", errSeveralHosts},
		{"redis://a:1,redis://b:1", errSeveralHosts},
		{"10.0.0.1:6379", errNotURL},
		{"http://host", errScheme},
		{"redis", errScheme},
		{"redis://", errNoHost},
		{"redis://:6379", errNoHost},
		{"redis:host:6379", errNoHost},
		{"redis://:pass@", errNoHost},
		{"redis://a,b:6379", errSeveralHosts},
		{"redis://]0", errNotURL},
		{"redis://a:b:1", errNotURL},
		{"redis://[a]:1", errNotURL},
		{"redis://bücher.example", nil},
		{"redis://host:0", errBadPort},
		{"redis://host:65536", errBadPort},
		{"redis://host:port", errPortNotNumber},
		{"redis://127.0.0.1:63x79", errPortNotNumber},
		{"redis://[::1]:63x79/", errPortNotNumber},
		{"redis://user:a@b@host:port", errNotURL},
		{"redis://a b", errNotURL},
		{" redis://host", errNotURL},
		{"redis://host/0", errDatabase},
		{"redis://host/12", errDatabase},
		{"redis://host?db=0", errDatabase},
		{"redis://host?database=0", errDatabase},
		{"unix:///run/redis.sock?db=1", errDatabase},
		{"redis://host/name", errPath},
		{"redis://host/0/1", errPath},
		{"redis://host?max_retries=3", errParameter},
		{"redis://host?skip_verify=true", errParameter},
		{"rediss://host?skip_verify=perhaps", errParameter},
		{"rediss://host?skip_verify=true&skip_verify=false", errParameter},
		{"redis://host?%zz", errParameter},
		{"redis://host#part", errFragment},
		{"redis://user#pass@host", errFragment},
		{"unix://run/redis.sock", errNoPath},
		{"unix:/run/redis.sock", errNoPath},
		{"unix://", errNoPath},
		{"unix:///", errNoPath},
	}
	for _, test := range tests {
		if got := checkMasterURL(test.url); got != test.want {
			t.Errorf("masterURL(%q) = %v, want %v", test.url, got, test.want)
		}
	}
}

func TestAddress(t *testing.T) {
	same := [][]string{
		{"redis://host", "redis://host:6379", "rediss://HOST:6379/", "redis://user:pass@host.", "redis://host:"},
		{"redis://[::1]:1", "redis://[0:0:0:0:0:0:0:1]:1"},
		{"redis://10.0.0.1", "redis://[::ffff:10.0.0.1]"},
		{"unix:///run/r.sock", "unix:///run/../run//r.sock", "unix://:pass@/run/r.sock"},
		{"redis://host:6380"},
		{"redis://host6379"},
		{"redis://localhost"},
		{"redis://127.0.0.1"},
		{"unix:///run/R.sock"},
	}
	class := map[string]int{}
	for i, urls := range same {
		for _, url := range urls {
			where := canonicalAddress(url)
			if j, seen := class[where]; seen && i != j {
				t.Errorf("%s has the address of %s", url, same[j][0])
			}
			class[where] = i
			if where != canonicalAddress(urls[0]) {
				t.Errorf("%s has not the address of %s", url, urls[0])
			}
		}
	}
}

// FuzzMasterURL checks that go-redis accepts each URL that the proxy accepts, and connects to
// database 0 of a named server.
func FuzzMasterURL(f *testing.F) {
	for _, seed := range []string{"redis://host", "rediss://u:p@[::1]:1/?skip_verify=true", "unix://:p@/run/r.sock",
		"redis://h:/", "redis://h/%30", "redis://a%2cb", "unix:///%20", "redis://h?", "redis://h?DB=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, url string) {
		if checkMasterURL(url) != nil {
			return
		}
		options, err := redis.ParseURL(url)
		if err != nil || options.DB != 0 {
			t.Fatalf("go-redis refuses %q: %v", url, err)
		}
		if host, _, err := net.SplitHostPort(options.Addr); options.Network == "tcp" && (err != nil || host == "") {
			t.Fatalf("%q leads to %q", url, options.Addr)
		}
		if options.Network == "unix" && options.Addr == "" {
			t.Fatalf("%q leads to no socket", url)
		}
	})
}
