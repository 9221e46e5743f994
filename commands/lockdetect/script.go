package lockdetect

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
)

const (
	// maxScripts limits the number of remembered scripts.
	maxScripts = 64
	// maxBody is the maximum size of an inspected script, in bytes. A release has a few lines.
	maxBody = 2 << 10
)

// scripts remembers which scripts compare and delete. The zero value is empty.
type scripts struct {
	mu     sync.RWMutex
	byBody map[string]bool
	// digests holds the SHA-1 of the scripts that compare and delete, in lower-case hexadecimal.
	digests map[string]bool
}

// isReleaseBody reports whether a script compares and deletes, and remembers the result.
func (s *scripts) isReleaseBody(body []byte) bool {
	if len(body) > maxBody {
		return false
	}
	s.mu.RLock()
	isRelease, known := s.byBody[string(body)]
	s.mu.RUnlock()
	if !known {
		isRelease = comparesAndDeletes(body)
		s.remember(string(body), isRelease)
	}
	return isRelease
}

// remember remembers a script. If there is no room, it forgets all other scripts. If there is no
// room for a digest, it forgets the scripts as well, so that each script gets its digest back when
// a client sends it again.
func (s *scripts) remember(body string, isRelease bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byBody == nil || len(s.byBody) >= maxScripts {
		s.byBody = map[string]bool{}
	}
	if isRelease && (s.digests == nil || len(s.digests) >= maxScripts) {
		s.digests, s.byBody = map[string]bool{}, map[string]bool{}
	}
	s.byBody[body] = isRelease
	if !isRelease {
		return
	}
	sum := sha1.Sum([]byte(body))
	s.digests[hex.EncodeToString(sum[:])] = true
}

// isReleaseDigest reports whether a digest is the SHA-1 of a remembered script that compares and
// deletes.
func (s *scripts) isReleaseDigest(digest []byte) bool {
	if len(digest) != 2*sha1.Size {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.digests[string(bytes.ToLower(digest))]
}

// comparesAndDeletes reports whether a script releases a lock in the form that libraries use. Such
// a script gets the value of the first key, compares it with an argument, and deletes the key.
func comparesAndDeletes(body []byte) bool {
	text := singleQuotes.Replace(strings.ToLower(string(body)))
	text = strings.Join(strings.Fields(text), "")
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}
	return has("call('get',keys[1])") && has("call('del',keys[1])", "call('unlink',keys[1])") &&
		has("argv[") && has("==", "~=")
}

// singleQuotes replaces double quotes by single quotes.
var singleQuotes = strings.NewReplacer(`"`, `'`)
