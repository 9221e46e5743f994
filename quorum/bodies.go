package quorum

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
)

// bodiesKey is the hash on the masters that holds the bodies of scripts.
var bodiesKey = Key{Name: "redlock-proxy:scripts"}

// Bodies keeps the bodies of scripts on the masters, each under its SHA-1, so that
// a script loaded through one proxy is known to all. A body proves its name by its
// hash, so one master's answer is enough.
type Bodies struct{ cluster *Cluster }

// NewBodies keeps bodies on a cluster.
func NewBodies(c *Cluster) *Bodies { return &Bodies{c} }

// Save stores a body under its SHA-1, in lower-case hexadecimal, on a majority of
// the masters.
func (b *Bodies) Save(ctx context.Context, sha, body string) error {
	return b.do(ctx, "HSET", bodiesKey.Name, sha, body)
}

// Flush removes all bodies.
func (b *Bodies) Flush(ctx context.Context) error { return b.do(ctx, "UNLINK", bodiesKey.Name) }

func (b *Bodies) do(ctx context.Context, words ...any) error {
	_, err := b.cluster.Commit(ctx, plain(words...))
	return err
}

// Find returns the body with that SHA-1. ok is false if no master that answered has
// it; the error is a *NoQuorumError where too few answered to say so.
func (b *Bodies) Find(ctx context.Context, sha string) (body string, ok bool, err error) {
	r := b.cluster.begin(plain("HGET", bodiesKey.Name, sha))
	verdict, err := r.wait(ctx)
	if err != nil {
		return "", false, err
	}
	if body, ok = r.body(sha); ok {
		return body, true, nil
	}
	r.waitForAll(ctx)
	if body, ok = r.body(sha); ok {
		return body, true, nil
	}
	if verdict == NoQuorum {
		return "", false, r.noQuorum()
	}
	return "", false, nil
}

func plain(words ...any) Change {
	return Change{kind: kindPlain, key: bodiesKey, args: words}
}

// body looks for the one with that hash among the answers so far.
func (r *round) body(sha string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.answers {
		if body, ok := a.said.(string); ok && hashes(body, sha) {
			return body, true
		}
	}
	return "", false
}

func hashes(body, sha string) bool {
	sum := sha1.Sum([]byte(body))
	return hex.EncodeToString(sum[:]) == sha
}
