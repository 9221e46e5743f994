package upstream

import (
	"strings"
	"testing"
)

// TestHasAllPermissions reads the replies of Redis 6.0, Redis 7 and 8, and Valkey 9.1, with RESP2
// and RESP3. A limit, or a field that the proxy does not know, means that the user may not do
// everything.
func TestHasAllPermissions(t *testing.T) {
	const (
		redis6 = "*8 $5 flags *3 $2 on $7 allkeys $11 allcommands $9 passwords *0 $8 commands $5 +@all $4 keys *1 $1 * "
		redis7 = "*12 $5 flags *2 $2 on $6 nopass $9 passwords *1 $2 ab $8 commands $5 +@all $4 keys $2 ~* " +
			"$8 channels $2 &* $9 selectors *1 *6 $8 commands $5 -@all $4 keys $0  $8 channels $0  "
		valkey = "%7 $5 flags ~2 $2 on $6 nopass $9 passwords *0 $8 commands $5 +@all $4 keys $2 ~* " +
			"$8 channels $2 &* $9 databases $6 alldbs $9 selectors *0 "
	)
	for _, c := range []struct {
		reply string
		want  bool
	}{
		{redis6, true}, {redis7, true}, {valkey, true},
		{strings.Replace(redis6, "*1 $1 *", "*0", 1), false},
		{strings.Replace(redis6, "*1 $1 *", "*1 $3 a:*", 1), false},
		{strings.Replace(redis6, "*1 $1 *", "*2 $1 * $1 a", 1), false},
		{strings.Replace(redis7, "~*", "~a", 1), false},
		{strings.Replace(redis7, "&*", "&a", 1), false},
		{strings.Replace(redis7, "$5 +@all", "$10 +@all -set", 1), false},
		{strings.Replace(valkey, "$6 alldbs", "$4 db=1", 1), false},
		{strings.Replace(valkey, "$6 alldbs", "$0 ", 1), false},
		{strings.Replace(valkey, "$9 databases $6 alldbs", "$5 hours $4 8-17", 1), false},
		{strings.Replace(valkey, "$4 keys $2 ~* ", "", 1), false},
		{"*2 $5 flags *4 $8 commands $5 +@all $4 keys $2 ~* ", false},
		{"*4 $4 keys $2 ~* $5 flags *0 ", false},
		{"*3 $8 commands $5 +@all $4 keys ", false},
		{"*-1 ", false}, {"-NOPERM ", false}, {"", false},
	} {
		reply := strings.NewReplacer(" -set", " -set", " ", "\r\n").Replace(c.reply)
		if HasAllPermissions([]byte(reply)) != c.want {
			t.Errorf("%q: want %v", reply, c.want)
		}
	}
}
