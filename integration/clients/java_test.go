//go:build integration

package clients

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestJavaLocks tries what libraries of the JVM send.
func TestJavaLocks(t *testing.T) {
	tryLocks(t, []dialect{
		{name: "jedis", taken: "OK", owned: true, extends: true},
		{name: "spring", taken: "true", owned: true, extends: true, more: comparing},
		{name: "spring-7.0", taken: "true", owned: true, extends: true, more: sameRegistry},
		{name: "spring-5", taken: "true", owned: true, extends: true},
		{name: "spring-pubsub", taken: "true", owned: true, extends: true, more: published},
		{name: "shedlock", taken: "OK", extends: true, more: shedLock},
		{name: "shedlock-safe", taken: "OK", owned: true, extends: true},
		{name: "redlock4j", taken: "OK", owned: true, extends: true},
		{name: "redisson", taken: "granted", owned: true, more: countsUp},
	}, javaLocks(t)...)
}

// javaLocks compiles the program of Java and returns how it is run.
func javaLocks(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("javac"); err != nil {
		redistest.Absent(t, "a JDK of version 17 or newer: apt-get install default-jdk-headless")
	}
	sources, err := filepath.Glob(inFolder("java/*.java"))
	kit.Must(t, err)
	classes := t.TempDir()
	args := append([]string{"-Xlint:all,-serial", "-Werror", "-d", classes}, sources...)
	if output, err := exec.Command("javac", args...).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, output)
	}
	return []string{"java", "-XX:TieredStopAtLevel=1", "-cp", classes, "Locks"} // a short life is not worth much compiling
}

// comparing: the library has no reason to fall back to scripts, whatever the masters' version is.
func comparing(s *side, d dialect) {
	s.t.Helper()
	sameRegistry(s, d)
	still, err := s.a.ask(d.name, "comparing", d.key("more"))
	kit.Must(s.t, err)
	if s.masters != nil && still != "true" {
		s.t.Errorf("%s: DELEX or SET IFEQ was refused", d.name)
	}
}

// countsUp: the holder takes the lock again, and gives it back as often.
func countsUp(s *side, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.take(s.a, d, key, longLease)
	s.take(s.a, d, key, longerLease)
	s.remaining(d, key, longLease, longerLease)
	s.refuse(s.b, d, key)
	s.say(s.a, d, "release", key)
	s.refuse(s.b, d, key)
	s.say(s.a, d, "release", key)
	s.say(s.a, d, "release", key)
	s.take(s.b, d, key, longLease)
	s.say(s.b, d, "release", key)
}

// sameRegistry: all locks of a process have one token, so that it is granted again what it has.
func sameRegistry(s *side, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.take(s.a, d, key, longLease)
	s.take(s.a, d, key, longerLease)
	s.remaining(d, key, longLease, longerLease)
	s.refuse(s.b, d, key)
	s.say(s.a, d, "release", key)
	s.say(s.a, d, "release", key)
}

// published: the message that tells of a release comes once, where ordinary messages are, and wakes who waits.
func published(s *side, d dialect) {
	s.t.Helper()
	sameRegistry(s, d)
	key := d.key("published")
	listener, err := redistest.Dial(s.data.Addr(), kit.Patience)
	kit.Must(s.t, err)
	defer listener.Close()
	kit.Do(s.t, listener, "PSUBSCRIBE", "registry-channel:*")
	s.take(s.a, d, key, longLease)
	kit.Must(s.t, s.b.send(d.name, "wait", key, kit.Millis(longLease)))
	kit.Settles(s.t, func() error { return subscribes(s.data) })
	s.say(s.a, d, "release", key)
	reply, err := s.b.answer()
	kit.Must(s.t, err)
	s.note("b: waited for %s: %s", key, reply)
	s.say(s.a, d, "release", key)
	s.say(s.b, d, "release", key)
	kit.Do(s.t, s.raw, "PUBLISH", "registry-channel:the-end", "the end")
	for message := ""; message != "the end"; {
		received, err := listener.Receive()
		kit.Must(s.t, err)
		message = fmt.Sprint(received.([]any)[3])
		s.note("heard: %v", received)
	}
}

// subscribes wants two clients to have subscribed to a pattern: the listener, and who waits.
func subscribes(server *redistest.Server) error {
	client, err := redistest.Dial(server.Addr(), kit.Patience)
	if err != nil {
		return err
	}
	defer client.Close()
	list, err := client.Do("CLIENT", "LIST", "TYPE", "PUBSUB")
	if text, _ := list.(string); err == nil && strings.Count(text, "\n") != 2 {
		err = fmt.Errorf("clients that subscribed:\n%v", list)
	}
	return err
}

// shedLock releases whatever is there, keeps a lock for the rest of its least time, and overwrites another's while it does so.
func shedLock(s *side, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.take(s.a, d, key, longLease)
	s.say(s.b, d, "extend", key, kit.Millis(longerLease))
	s.note("then: %v", s.values(d, key))
	s.remaining(d, key, longLease, longerLease)
	s.say(s.b, d, "release", key)
	s.say(s.a, d, "extend", key, kit.Millis(longLease))
	s.take(s.a, d, key, longLease)
	s.say(s.a, d, "extend", key, kit.Millis(coarseLease))
	s.takeSoon(s.b, d, key, longLease)
	s.say(s.a, d, "release", key) // too late, it takes the other's away
	s.say(s.b, d, "release", key)
}
