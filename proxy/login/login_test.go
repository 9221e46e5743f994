package login_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/proxy/login"
)

func TestFind(t *testing.T) {
	for line, want := range map[string]string{
		"auth p": "default p", "auth u p": "u p", "hello 3 auth u p": "u p hello 3",
		"hello 3 SetName x AUTH u p":    "u p hello 3 SetName x",
		"hello 3 auth u p setname auth": "u p hello 3 setname auth",
		"auth":                          "", "auth a b c": "", "hello": "", "hello 3": "", "hello 3 setname auth": "",
		"hello 3 auth u": "", "get auth u p": "",
	} {
		words := syntax.Bytes(strings.Fields(line))
		a, found := login.Find(string(words[0]), words)
		got := ""
		if found {
			got = string(bytes.TrimSpace(bytes.Join(append([][]byte{a.User, a.Password}, a.Rest...), []byte(" "))))
		}
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestPasswordLogin(t *testing.T) {
	g := login.NewPasswordLogin("p")
	if !g.MustLogIn() || g.Refuses(login.Auth{User: []byte("default"), Password: []byte("p")}) {
		t.Error("the password is refused, or not required")
	}
	for user, password := range map[string]string{"default": "q", "u": "p"} {
		if !g.Refuses(login.Auth{User: []byte(user), Password: []byte(password)}) {
			t.Errorf("%s may pass with %s", user, password)
		}
	}
	if g.SetPassword(""); !g.MustLogIn() {
		t.Error("it opened for want of a password")
	}
	if open := login.NewPasswordLogin(""); open.MustLogIn() || open.Handles("auth") {
		t.Error("a login without a password is required")
	}
}

// scriptedUpstream answers each group of commands with the next replies, and records the commands.
type scriptedUpstream struct {
	replies      [][]string
	received     []string
	disconnected bool
}

func (s *scriptedUpstream) SendAll(_ context.Context, commands [][]string) (answers [][]byte, err error) {
	for _, words := range commands {
		s.received = append(s.received, strings.Join(words, " "))
	}
	if len(s.replies) == 0 {
		return nil, errors.New("gone")
	}
	answers = syntax.Bytes(s.replies[0])
	s.replies = s.replies[1:]
	return answers, nil
}

func (s *scriptedUpstream) Disconnect() { s.disconnected = true }

// TestRights checks that replies are remembered for an identity, a probe and a database. A
// transaction that cannot be discarded ends the connection.
func TestRights(t *testing.T) {
	var r login.Rights
	checks := [][]string{{"get", "a"}, {"set", "b", "0"}}
	up := &scriptedUpstream{replies: [][]string{{"+OK\r\n"}, {"+QUEUED\r\n", "-NOPERM no\r\n", "+OK\r\n"}}}
	r.Refresh(1, 1, 0)
	texts, unknown := r.CachedRefusals(checks)
	if err := r.Ask(t.Context(), up, false, checks, unknown, texts); err != nil || texts[0] != "" ||
		texts[1] != "NOPERM no" {
		t.Fatal(err, texts)
	}
	if remembered, unknown := r.CachedRefusals(checks); len(unknown) > 0 || remembered[1] != "NOPERM no" {
		t.Errorf("not remembered: %q, open %v", remembered, unknown)
	}
	r.Refresh(1, 1, 7)
	if _, unknown := r.CachedRefusals(checks); len(unknown) != 2 {
		t.Errorf("remembered in another database; open: %v", unknown)
	}
	r.Refresh(1, 1, 0)
	if _, unknown := r.CachedRefusals(checks); len(unknown) > 0 {
		t.Errorf("forgotten after a visit to another database; open: %v", unknown)
	}
	r.Refresh(1, 2, 0)
	if _, unknown := r.CachedRefusals(checks); len(unknown) != 2 {
		t.Errorf("remembered beyond a probe; open: %v", unknown)
	}
	for i := range 10_000 { // many and long checks
		checks := [][]string{{"get", strings.Repeat("k", i)}}
		up.replies = [][]string{{"+OK\r\n"}, {"+QUEUED\r\n", "+OK\r\n"}}
		if err := r.Ask(t.Context(), up, false, checks, []int{0}, make([]string, 1)); err != nil ||
			r.Size() > 16<<10 {
			t.Fatal(r.Size(), err)
		}
		if _, unknown := r.CachedRefusals(checks); len(unknown) != 0 {
			t.Fatalf("the last one is not remembered, of %d bytes", i)
		}
	}
	if r.Size() == 0 {
		t.Error("nothing is counted")
	}
	if r.DropRefusals(); r.Size() != 0 {
		t.Errorf("%d bytes are kept of nothing", r.Size())
	}
	up.replies = [][]string{{"+OK\r\n"}, {"+QUEUED\r\n", "+QUEUED\r\n", "-ERR no\r\n"}}
	if err := r.Ask(t.Context(), up, false, checks, []int{0, 1}, texts); err == nil || !up.disconnected {
		t.Errorf("error %v, severed %v", err, up.disconnected)
	}
}
