package quorum

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/internal/redistest"
)

// startRealMaster starts a redis-server. It returns a cluster with this server as its only master,
// and a client of the server.
func startRealMaster(t *testing.T) (*Cluster, *redis.Client) {
	t.Helper()
	server := redistest.New(t, redistest.Options{})
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	return runCluster(t, Options{Masters: []string{server.URL()}, Unguarded: true}), client
}

func shaOf(body string) string {
	sum := sha1.Sum([]byte(body))
	return hex.EncodeToString(sum[:])
}

// storedBodies returns the bodies that are still stored. It does not mark them as used.
func storedBodies(t *testing.T, client *redis.Client, bodies ...string) (found []string) {
	t.Helper()
	for _, body := range bodies {
		if client.HExists(t.Context(), bodiesKey, shaOf(body)).Val() {
			found = append(found, body)
		}
	}
	return found
}

// TestBodiesAreBounded checks that Save drops the least recently used bodies beyond the limits of
// number and bytes.
func TestBodiesAreBounded(t *testing.T) {
	cluster, client := startRealMaster(t)
	b := NewScriptBodies(cluster)
	b.limits = bodyLimits{count: 3, bytes: 100, ttl: time.Hour}
	save := func(bodies ...string) {
		t.Helper()
		for _, body := range bodies {
			if err := b.Save(t.Context(), shaOf(body), body); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := func(want ...string) {
		t.Helper()
		all := append([]string{"a", "b", "c", "d", "e"}, strings.Repeat("x", 97), strings.Repeat("y", 300))
		if got := storedBodies(t, client, all...); !slices.Equal(got, want) {
			t.Errorf("kept %.20q, want %.20q", got, want)
		}
	}
	save("a", "b", "c", "a", "d")
	want("a", "c", "d")
	if _, ok, err := b.Find(t.Context(), shaOf("c")); !ok || err != nil {
		t.Fatal(ok, err)
	}
	save("e")
	want("c", "d", "e")
	save(strings.Repeat("x", 97))
	want("c", "e", strings.Repeat("x", 97))
	save("a")
	want("a", "e", strings.Repeat("x", 97))
	// More than the limit, but kept for the client that just loaded it.
	save(strings.Repeat("y", 300))
	want(strings.Repeat("y", 300))
	for _, key := range []string{bodiesKey, bodiesUseKey, bodiesSizeKey} {
		if left := client.PTTL(t.Context(), key).Val(); left <= 0 || left > time.Hour {
			t.Errorf("%s stays for %v", key, left)
		}
	}
	if err := b.Flush(t.Context()); err != nil ||
		client.Exists(t.Context(), bodiesKey, bodiesUseKey, bodiesSizeKey).Val() != 0 {
		t.Errorf("not all is gone: %v", err)
	}
}

// TestSaveLimitsExistingBodies checks that Save applies the limits to bodies that were stored
// without limits.
func TestSaveLimitsExistingBodies(t *testing.T) {
	cluster, client := startRealMaster(t)
	for i := range 50 {
		body := fmt.Sprint(i)
		client.HSet(t.Context(), bodiesKey, shaOf(body), body)
	}
	b := NewScriptBodies(cluster)
	b.limits = bodyLimits{count: 3, bytes: 100, ttl: time.Hour}
	if got, ok, err := b.Find(t.Context(), shaOf("7")); got != "7" || !ok || err != nil {
		t.Errorf("%q, %v, %v", got, ok, err)
	}
	if err := b.Save(t.Context(), shaOf("new"), "new"); err != nil {
		t.Fatal(err)
	}
	if n := client.HLen(t.Context(), bodiesKey).Val(); n != 3 || len(storedBodies(t, client, "new")) != 1 {
		t.Errorf("%d bodies", n)
	}
}
