package harness

import (
	"strings"
	"testing"

	"redlock-proxy/internal/redistest"
)

func TestHeld(t *testing.T) {
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
		if got := Held(test.reply); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}
