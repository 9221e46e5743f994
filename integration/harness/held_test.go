package harness

import (
	"strings"
	"testing"

	"redlock-proxy/internal/redistest"
)

func TestHeldToken(t *testing.T) {
	attempt, ballot := strings.Repeat("1", 36), strings.Repeat("2", 36)
	for _, test := range []struct {
		name        string
		reply, want any
	}{
		{"no key", nil, nil},
		{"an error", redistest.RespError("WRONGTYPE"), redistest.RespError("WRONGTYPE")},
		{"a lock", "#p" + attempt + "token", "token"},
		{"one that was replaced", "#r" + attempt + ballot + ballot + "v01" + "change no. 1" + "token", "token"},
		{"one that was removed by ballot", "#r" + attempt + ballot + ballot + "-01" + "change no. 1", nil},
		{"one that a catch-up bars", "#b" + attempt, nil},
		{"a lock of another client", "token", "token"},
	} {
		if got := HeldToken(test.reply); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func TestSameCells(t *testing.T) {
	attempt, ballot, higher := strings.Repeat("1", 36), strings.Repeat("2", 36), strings.Repeat("3", 36)
	none, change := strings.Repeat("0", 36), "change no. 1"
	plain, accepted := any("#p"+attempt+"token"), any("#r"+attempt+ballot+ballot+"v01"+change+"token")
	for _, test := range []struct {
		name       string
		one, other any
		want       bool
	}{
		{"nothing", nil, nil, true},
		{"a lock that is missing", plain, nil, false},
		{"a lock", plain, plain, true},
		{"a promise", plain, "#r" + attempt + ballot + none + "v00" + "token", true},
		{"another promise", accepted, "#r" + attempt + higher + ballot + "v01" + change + "token", true},
		{"another ballot", accepted, "#r" + attempt + higher + higher + "v01" + change + "token", false},
		{"a value that was accepted by some", plain, accepted, false},
		{"another token", plain, "#p" + attempt + "other", false},
		{"another attempt", plain, "#p" + ballot + "token", false},
		{"one that a catch-up bars", plain, "#b" + attempt, false},
		{"one that a catch-up bars, and nothing", nil, "#b" + attempt, false},
		{"a removal", nil, "#r" + attempt + ballot + ballot + "-01" + change, false},
		{"a lock of another client", "token", "token", true},
		{"one of another client, and ours", plain, "token", false},
	} {
		if got := SameCells([]any{test.one, test.one, test.other}); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func TestIsUndetermined(t *testing.T) {
	one, other := strings.Repeat("1", 36), strings.Repeat("2", 36)
	held, barred := any("#p"+one+"token"), any("#b"+one)
	for _, test := range []struct {
		name    string
		replies []any
		want    bool
	}{
		{"nothing", []any{nil, nil, nil, nil, nil}, false},
		{"a minority", []any{held, held, nil, nil, nil}, false},
		{"a majority", []any{held, held, held, barred, nil}, false},
		{"a majority, if it was forgotten", []any{held, held, barred, nil, nil}, true},
		{"all that is left may be forgotten", []any{barred, barred, barred, nil, nil}, true},
		{"too few all the same", []any{held, barred, nil, nil, nil}, false},
		{"what is barred is another", []any{held, held, "#b" + other, nil, nil}, false},
		{"replaced by some", []any{held, "#r" + one + other + other + "v00" + "token", barred, nil, nil}, true},
	} {
		if got := IsUndetermined(test.replies); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}
