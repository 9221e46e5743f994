package script

import (
	"context"
	"reflect"
	"testing"
)

func TestScript(t *testing.T) {
	const body = "return redis.call('get','foo')"
	s, err := compile(body)
	if err != nil {
		t.Fatal(err)
	}
	if s.Body() != body || s.SHA() != "6b1bf486c81ceb7edf3c093f4c48582e38c0e791" {
		t.Errorf("%q %s", s.Body(), s.SHA())
	}
}

func TestLiterals(t *testing.T) {
	for body, want := range map[string][]string{
		`if redis.call('get', 'lock:a') == "t1" then return redis.call("del", 'lock:a') end return 0`: {"get", "lock:a",
			"t1", "del", "lock:a"},
		"return [[long]] .. [==[er]==] -- 'no'\n--[['no']]": {"long", "er"},
		`return "a\"b\n\65"`:                    {"a\"b\nA"},
		`return {x = "y", ["k"] = 'v', f"arg"}`: {"y", "k", "v", "arg"},
		"#!lua flags=no-writes\nreturn 'x'":     {"x"},
		"return 1":                              nil,
	} {
		s, err := compile(body)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Literals(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func TestFlags(t *testing.T) {
	for body, readOnly := range map[string]bool{
		"return 1":        false,
		"#!lua\nreturn 1": false,
		"#!lua flags=no-writes,allow-oom\nreturn 1":                               true,
		"#!lua flags=allow-stale,no-cluster,allow-cross-slot-keys\nreturn 1":      false,
		"#!lua flags=no-writes 'flags=allow-oom' \"flags=allow-stale\"\nreturn 1": true,
	} {
		s, err := compile(body)
		if err != nil {
			t.Fatal(err)
		}
		if s.readOnly != readOnly {
			t.Errorf("%q only reads: %v", body, s.readOnly)
		}
	}
}

// compile compiles without a limit.
func compile(body string) (*Script, error) {
	return Compile(context.Background(), body, Share{Time: -1})
}
