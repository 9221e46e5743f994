package conf

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestReadSentinel(t *testing.T) {
	tests := []struct {
		url, master, addrs, login, at string
	}{
		{"redis+sentinel://s1/mymaster", "mymaster", "s1:26379", ":", "redis://h:1"},
		{"redis+sentinel://s1:1,s2,10.0.0.1:3/a.b-c_d/2", "a.b-c_d", "s1:1 s2:26379 10.0.0.1:3", ":", "redis://h:1/2"},
		{"rediss+sentinel://u:p%40@[::1]:5,[::2]/m/?skip_verify=true", "m", "[::1]:5 [::2]:26379", ":",
			"rediss://u:p%40@h:1?skip_verify=true"},
		{"redis+sentinel://s1/m?sentinel_username=u&sentinel_password=p%26w", "m", "s1:26379", "u:p&w", "redis://h:1"},
		{"redis+sentinel://:a,b@s1/m?sentinel_password=p", "m", "s1:26379", ":p", "redis://:a,b@h:1"},
	}
	for _, test := range tests {
		s, named, err := ReadSentinel(test.url)
		if err != nil || !named {
			t.Errorf("%s: %v, %v", test.url, named, err)
			continue
		}
		if s.Master != test.master || strings.Join(s.Addrs, " ") != test.addrs ||
			s.Username+":"+s.Password != test.login || s.URLAt("h:1") != test.at {
			t.Errorf("%s: %s, %v, %s:%s, %s", test.url, s.Master, s.Addrs, s.Username, s.Password, s.URLAt("h:1"))
		}
	}
	for _, other := range []string{"", "redis://s1/m", "sentinel://s1/m", "unix+sentinel://s1/m", "redis+sentinel:s1/m"} {
		if _, named, err := ReadSentinel(other); named || err != nil {
			t.Errorf("%q: %v, %v", other, named, err)
		}
	}
}

func TestSentinelURLErrors(t *testing.T) {
	tests := []struct {
		url  string
		want error
	}{
		{"redis+sentinel://", errNoHost},
		{"redis+sentinel:///m", errNoHost},
		{"redis+sentinel://s1,/m", errNoHost},
		{"redis+sentinel://s1", errSentinelNoName},
		{"redis+sentinel://s1/", errSentinelNoName},
		{"redis+sentinel://s1//2", errSentinelNoName},
		{"redis+sentinel://s1/my%20master", errSentinelBadName},
		{"redis+sentinel://s1/m/two", errSentinelPath},
		{"redis+sentinel://s1/m/-1", errSentinelPath},
		{"redis+sentinel://s1/m/1/2", errSentinelPath},
		{"redis+sentinel://s1/m/99999999999", errSentinelPath},
		{"redis+sentinel://s1:0/m", errBadPort},
		{"redis+sentinel://s1:65536/m", errBadPort},
		{"redis+sentinel://s1:port/m", errSentinelURL},
		{"redis+sentinel://::1/m", errSentinelURL},
		{"redis+sentinel://s1;s2/m", errSeveralHosts},
		{"redis+sentinel://s 1/m", errSentinelURL},
		{"redis+sentinel://s1,S1.:26379/m", errSentinelTwice},
		{"redis+sentinel://" + strings.Repeat("s1,", maxSentinels) + "s1/m", errSentinelCount},
		{"redis+sentinel://u:a%zz@s1/m", errSentinelURL},
		{"redis+sentinel://u:a b@s1/m", errSentinelURL},
		{"redis+sentinel://u:a#b@s1/m", errFragment},
		{"redis+sentinel://s1/m?db=1", errSentinelParameter},
		{"redis+sentinel://s1/m?skip_verify=true", errSentinelParameter},
		{"rediss+sentinel://s1/m?skip_verify=maybe", errSentinelParameter},
		{"redis+sentinel://s1/m?sentinel_password=a&sentinel_password=b", errSentinelParameter},
		{"redis+sentinel://s1/m?sentinel_username=a", errSentinelNoPassword},
		{"redis://host/3", nil},
		{"redis://host?db=3", nil},
		{"redis://host/3?max_retries=5", errParameter},
		{"redis://host?db=3&max_retries=5", errParameter},
		{"redis://host?db=3&a=1&b=2&c=3&d=4", errParameter},
	}
	for _, test := range tests {
		if err := checkUpstreamURL(test.url); err != test.want {
			t.Errorf("upstreamURL(%q) = %v, want %v", test.url, err, test.want)
		}
	}
	if err := checkMasterURL("redis+sentinel://s1/m"); err != errScheme {
		t.Errorf("a master by Sentinels: %v", err)
	}
}

// FuzzSentinelURL checks that an accepted URL names its Sentinels, and that Redact hides its
// passwords. go-redis must accept the URL of the Redis at any address.
func FuzzSentinelURL(f *testing.F) {
	for _, seed := range []string{"redis+sentinel://s1/m",
		"rediss+sentinel://u:p@[::1]:1,a:2/m/3?skip_verify=true&sentinel_password=x", "redis+sentinel://%2f@a,b/m?",
		"redis+sentinel://a/m/0/", "redis+sentinel://a:/m"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, url string) {
		s, named, err := ReadSentinel(url)
		if named != HasSentinels(url) || err != nil && (!named || s.Master != "") {
			t.Fatalf("%q: %v, %v", url, named, err)
		}
		if err != nil || !named {
			return
		}
		if slices.ContainsFunc(s.Addrs, func(addr string) bool {
			host, _,
				err := net.SplitHostPort(addr)
			return err != nil || host == ""
		}) {
			t.Fatalf("%q leads to %q", url, s.Addrs)
		}
		options, err := redis.ParseURL(s.URLAt("h:1"))
		if err != nil || options.Addr != "h:1" || (options.TLSConfig != nil) != strings.HasPrefix(url, "rediss") {
			t.Fatalf("go-redis refuses %q of %q: %v", s.URLAt("h:1"), url, err)
		}
		for _, secret := range []string{options.Password, s.Password} {
			if len(secret) > 8 && !strings.Contains("mxxxxx"+s.Master+strings.Join(s.Addrs, ","), secret) &&
				strings.Contains(Redact(url), secret) {
				t.Fatalf("%q is shown as %q", url, Redact(url))
			}
		}
	})
}
