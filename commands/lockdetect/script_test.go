package lockdetect

import (
	"crypto/sha1"
	"fmt"
	"testing"
)

// TestDigestAfterOverflow checks that a script whose digest was forgotten gets it back when a
// client sends the script again, regardless of the other remembered scripts.
func TestDigestAfterOverflow(t *testing.T) {
	var s scripts
	body := func(i int) []byte {
		return fmt.Appendf(nil, `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) end -- %d`, i)
	}
	digest := func(i int) []byte { return fmt.Appendf(nil, "%x", sha1.Sum(body(i))) }
	send := func(from, to int) {
		for i := from; i < to; i++ {
			if !s.isReleaseBody(body(i)) || !s.isReleaseDigest(digest(i)) {
				t.Fatalf("script %d is not detected", i)
			}
		}
	}
	send(0, maxScripts/2)
	for i := range maxScripts/2 + 1 { // scripts without a digest: all bodies are forgotten
		s.isReleaseBody(fmt.Appendf(nil, "return %d", i))
	}
	last := maxScripts/2 + maxScripts/2
	send(maxScripts/2, last+1) // the last one overflows the digests
	if s.isReleaseDigest(digest(last - 1)) {
		t.Fatal("no digest was forgotten: the test shows nothing")
	}
	send(last-1, last)
}
