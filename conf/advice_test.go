package conf

import (
	"testing"

	"pgregory.net/rapid"
)

func TestAdvice(t *testing.T) {
	known := []string{"master", "max-ttl"}
	for name, want := range map[string]string{
		"masters": "did you mean master?", "MaxTTL": "did you mean max-ttl?", "max_ttl": "did you mean max-ttl?",
		"mast": "did you mean master?", "mas": "known settings: master, max-ttl", "x": "known settings: master, max-ttl",
	} {
		if got := advice(name, known); got != want {
			t.Errorf("advice for %q is %q, want %q", name, got, want)
		}
	}
}

// referenceDistance computes the distance by its definition.
func referenceDistance(a, b string) int {
	switch {
	case a == "" || b == "":
		return len(a) + len(b)
	case a[0] == b[0]:
		return referenceDistance(a[1:], b[1:])
	}
	return 1 + min(referenceDistance(a[1:], b[1:]), referenceDistance(a[1:], b), referenceDistance(a, b[1:]))
}

func TestDistance(t *testing.T) {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if got, want := distance(a, b), referenceDistance(a, b); got != want {
			t.Fatalf("distance(%q, %q) = %d, want %d", a, b, got, want)
		}
	})
}
