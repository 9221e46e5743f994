package conf

import (
	"errors"
	"strings"
	"testing"
)

func TestReadCluster(t *testing.T) {
	for _, c := range []struct {
		text, seeds, url string
		err              error
	}{
		{"redis+cluster://node-1:7000,node-2", "node-1:7000 node-2:6379", "redis://h:1", nil},
		{"rediss+cluster://u:p%40@[::1]:7000/?skip_verify=true", "[::1]:7000", "rediss://u:p%40@h:1?skip_verify=true", nil},
		{"redis+cluster://node-1:7000/0", "", "", errClusterPath},
		{"redis+cluster://node-1:7000?x=1", "", "", errClusterParameter},
		{"redis+cluster://node-1:7000?skip_verify=true", "", "", errClusterParameter},
		{"redis+cluster://node-1:7000,NODE-1.:7000", "", "", errClusterTwice},
		{"redis+cluster://node-1:0", "", "", errBadPort},
		{"redis+cluster://", "", "", errNoHost},
		{"redis+cluster://a,", "", "", errNoHost},
		{"redis+cluster://a#b", "", "", errFragment},
		{"redis+cluster://a:x", "", "", errClusterURL},
		{"redis+cluster://a b", "", "", errClusterURL},
		{"redis+cluster://" + strings.Repeat("a,", maxSeeds) + "a", "", "", errClusterCount},
	} {
		got, named, err := ReadCluster(c.text)
		if !named || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) || strings.Join(got.Seeds, " ") != c.seeds {
			t.Errorf("%s: %v, %t, %v", c.text, got.Seeds, named, err)
		}
		if err == nil && got.URLAt("h:1") != c.url {
			t.Errorf("%s: URL %s", c.text, got.URLAt("h:1"))
		}
	}
	for _, other := range []string{"redis://a", "redis+sentinel://a/m", "cluster://a", "x+cluster://a", ""} {
		if _, named, _ := ReadCluster(other); named {
			t.Errorf("%s is read as a cluster", other)
		}
	}
}

func TestClusterSettings(t *testing.T) {
	for _, c := range []struct {
		flags map[string][]string
		want  string
	}{
		{map[string][]string{"upstream": {"redis+cluster://n"}, "announce": {"proxy-1"}, "cluster-ports": {"7001-7009"}}, ""},
		{map[string][]string{"announce": {"proxy-1"}, "cluster-ports": {"7001-7009"}}, ""},
		{map[string][]string{"upstream": {"redis+cluster://n"}, "announce": {"proxy-1:6380"}}, "without a port"},
		{map[string][]string{"cluster-ports": {"7009-7001"}}, "is not a range of ports"},
		{map[string][]string{"cluster-ports": {"0-1"}}, "is not a range of ports"},
		{map[string][]string{"upstream": {"redis+cluster://n"}, "cluster-mode": {"emulated"}}, "needs a proxy without an upstream"},
		{map[string][]string{"upstream": {"redis+cluster://n,m"}, "lock-keys": {"lock:*"}, "move-from-upstream": {"true"}},
			"in one step"},
		{map[string][]string{"upstream": {"redis+cluster://u:p@n"}}, "has a login"},
		{map[string][]string{"upstream": {"redis+cluster://a,m:1"}}, "is a master, too"},
	} {
		c.flags["master"] = []string{"redis://m:1"}
		config, err := Load(Source{Flags: c.flags})
		if text := errorText(err); c.want == "" && err != nil || !strings.Contains(text, c.want) {
			t.Errorf("%v: %v, want %q", c.flags, err, c.want)
		}
		if first, last := config.ClusterPortRange(); err == nil && (first != 7001 || last != 7009) {
			t.Errorf("ports %d to %d", first, last)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
