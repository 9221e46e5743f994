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
	// maxScripts bounds how many scripts are remembered.
	maxScripts = 64
	// maxBody is the longest script that is looked at, in bytes: a release is a few lines.
	maxBody = 2 << 10
)

// scripts remember which scripts compare and delete. The zero value knows none.
type scripts struct {
	mu     sync.RWMutex
	byBody map[string]bool
	// digests are the SHA-1 of those that do, in lower-case hexadecimal.
	digests map[string]bool
}

// releases reports whether a script compares and deletes, and remembers it.
func (s *scripts) releases(body []byte) bool {
	if len(body) > maxBody {
		return false
	}
	s.mu.RLock()
	does, known := s.byBody[string(body)]
	s.mu.RUnlock()
	if !known {
		does = comparesAndDeletes(body)
		s.learn(string(body), does)
	}
	return does
}

// learn makes room by forgetting the others: those in use come back.
func (s *scripts) learn(body string, does bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byBody == nil || len(s.byBody) >= maxScripts {
		s.byBody = map[string]bool{}
	}
	s.byBody[body] = does
	if !does {
		return
	}
	if s.digests == nil || len(s.digests) >= maxScripts {
		s.digests = map[string]bool{}
	}
	sum := sha1.Sum([]byte(body))
	s.digests[hex.EncodeToString(sum[:])] = true
}

// isRelease reports whether that is the SHA-1 of a script that was seen to compare and
// delete.
func (s *scripts) isRelease(digest []byte) bool {
	if len(digest) != 2*sha1.Size {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.digests[string(bytes.ToLower(digest))]
}

// comparesAndDeletes recognises the release of a lock as libraries write it: the value of
// the first key is got and compared with an argument, and the key is deleted.
func comparesAndDeletes(body []byte) bool {
	text := plain.Replace(strings.ToLower(string(body)))
	text = strings.Join(strings.Fields(text), "")
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}
	return has("call('get',keys[1])") && has("call('del',keys[1])", "call('unlink',keys[1])") &&
		has("argv[") && has("==", "~=")
}

// plain writes what means the same in one way.
var plain = strings.NewReplacer(`"`, `'`)
