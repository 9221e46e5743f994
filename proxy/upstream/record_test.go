package upstream

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/location"
)

// TestForbiddenRecord reads the record without the right to it. A user in the URL may have lost that
// right after it moved the locks, so the record is unknown. A proxy without a login never had it.
func TestForbiddenRecord(t *testing.T) {
	server := redistest.New(t, redistest.Options{})
	read := func(login string) string {
		u, err := New("redis://"+login+server.Addr(), 0, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		at, err := u.Record([]string{"lock:*"}).Read(t.Context())
		if err != nil {
			return err.Error()
		}
		return at.Describe()
	}
	admin, err := redistest.Dial(server.Addr(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	do := func(line string) {
		t.Helper()
		reply, err := admin.Do(strings.Fields(line)...)
		if refused, isError := reply.(redistest.RespError); err != nil || isError {
			t.Fatalf("%s: %v %v", line, refused, err)
		}
	}
	field := location.RecordField(4, []string{"lock:*"})
	if reply, err := admin.Do("HSET", location.RecordKey, field, "upstream"); err != nil || reply != int64(1) {
		t.Fatal(reply, err)
	}
	do("ACL SETUSER all on >secret ~* +@all")
	do("ACL SETUSER few on >secret ~lock:* +@all")
	do("AUTH all secret")
	for _, test := range []struct{ rule, login, want string }{
		{"+@all", "", "upstream (era 4)"},
		{"-@all +ping", "all:secret@", "upstream (era 4)"},
		{"-@all +ping", "few:secret@", "NOPERM"},
		{"-@all +ping", "few:wrong@", "WRONGPASS"},
		{"-@all +ping", "", "undecided (era 0)"},
		{"resetpass >secret", "", "undecided (era 0)"},
	} {
		do("ACL SETUSER default " + test.rule)
		if got := read(test.login); !strings.Contains(got, test.want) {
			t.Errorf("default user %s, login %q: %s, want %s", test.rule, test.login, got, test.want)
		}
	}
}
