//go:build integration

package clients

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestJavaLocks tests the commands of JVM libraries.
func TestJavaLocks(t *testing.T) {
	redistest.SkipShort(t)
	tryLocks(t, []dialect{
		{name: "jedis", taken: "OK", owned: true, extends: true},
		{name: "spring", taken: "true", owned: true, extends: true, more: comparing},
		{name: "spring-7.0", taken: "true", owned: true, extends: true, more: sameRegistry},
		{name: "spring-5", taken: "true", owned: true, extends: true},
		{name: "spring-pubsub", taken: "true", owned: true, extends: true, more: published},
		{name: "shedlock", taken: "OK", extends: true, more: shedLock},
		{name: "shedlock-safe", taken: "OK", owned: true, extends: true},
		{name: "redlock4j", taken: "OK", owned: true, extends: true},
		{name: "redisson", taken: "granted", owned: true, more: reentrantHolds},
		{name: "quartz", taken: "OK", owned: true, more: triggers},
		{name: "quartz-data-upstream", taken: "OK", owned: true, more: triggers},
		{name: "jedis-lock", taken: "true", endless: true},
	}, javaLocks(t)...)
}

// javaLocks compiles the Java program, and returns the command that runs it.
func javaLocks(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("javac"); err != nil {
		redistest.SkipMissing(t, "a JDK of version 17 or newer: apt-get install default-jdk-headless")
	}
	sources, err := filepath.Glob(inFolder("java/*.java"))
	kit.Must(t, err)
	classes := t.TempDir()
	args := append([]string{"-Xlint:all,-serial", "-Werror", "-d", classes}, sources...)
	if output, err := exec.Command("javac", args...).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, output)
	}
	// The program runs too briefly for optimizing compilation to pay off.
	return []string{"java", "-XX:TieredStopAtLevel=1", "-cp", classes, "Locks"}
}

// comparing tests that the library uses no scripts, whichever version the masters have.
func comparing(s *side, d dialect) {
	s.t.Helper()
	sameRegistry(s, d)
	still, err := s.a.ask(d.name, "comparing", d.key("more"))
	kit.Must(s.t, err)
	if s.masters != nil && still != "true" {
		s.t.Errorf("%s: DELEX or SET IFEQ was refused", d.name)
	}
}

// reentrantHolds tests that a holder can take the lock again, and must release it as often.
func reentrantHolds(s *side, d dialect) {
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

// sameRegistry tests that all locks of a process have one token, so that the process is granted a
// lock that it already holds.
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

// published tests that a release is published once, on the ordinary channel, and wakes the waiter.
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

// subscribes returns an error unless two clients have subscribed: the listener and the waiter.
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

// shedLock releases a lock of any holder, keeps a lock for the rest of its minimum time, and
// overwrites the lock of another client in this time.
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
	s.say(s.a, d, "release", key) // too late: it removes the other client's lock
	s.say(s.b, d, "release", key)
}

// triggers tests two schedulers that share the triggers of a job store.
func triggers(s *side, d dialect) {
	s.t.Helper()
	s.soleJob(d, d.key("sole"))
	s.deadScheduler(d, d.key("dead"))
	s.firings(d, d.key("firings"), func() error { return nil })
	kit.Must(s.t, s.killMinority())
	s.soleJob(d, d.key("sole-killed"))
	kit.Must(s.t, s.restartMinority())
	s.firings(d, d.key("firings-killed"), s.killMinority)
	s.deadScheduler(d, d.key("dead-killed"))
	kit.Must(s.t, s.restartMinority())
}

// firesAt returns the time at which a trigger fires, in milliseconds. It is fixed, so that it is
// the same in all transcripts.
func firesAt(n int) string { return fmt.Sprint(1_795_000_000_000 + 1000*n) }

// soleJob tests two triggers of a job that must not run twice at the same time. The second trigger
// waits until the run of the first one is complete.
func (s *side) soleJob(d dialect, key string) {
	s.t.Helper()
	for n, trigger := range []string{"first", "second", "third"} {
		s.say(s.a, d, "store", key, trigger, "sole", firesAt(n))
	}
	s.say(s.b, d, "store", key, "first", "sole", firesAt(9))
	s.say(s.b, d, "acquire", key, firesAt(9), "10")
	s.say(s.b, d, "states", key)
	s.say(s.a, d, "pause", key, "third")
	s.say(s.a, d, "fire", key, "first", firesAt(9))
	s.say(s.a, d, "states", key)
	s.say(s.a, d, "acquire", key, firesAt(9), "10")
	s.say(s.a, d, "recover", key)
	s.say(s.a, d, "resume", key, "third")
	s.say(s.a, d, "store", key, "fourth", "sole", firesAt(3))
	s.say(s.a, d, "states", key)
	s.say(s.b, d, "complete", key, "first")
	s.say(s.a, d, "acquire", key, firesAt(8), "10")
	s.say(s.a, d, "give-back", key, "second")
	s.say(s.a, d, "give-back", key, "second")
	s.say(s.b, d, "states", key)
	for _, trigger := range []string{"first", "second", "third", "fourth", "fourth"} {
		s.say(s.a, d, "remove", key, trigger)
	}
	s.say(s.b, d, "states", key)
}

// deadScheduler tests that the triggers that a scheduler has acquired or blocked are released when
// it has been silent for too long.
func (s *side) deadScheduler(d dialect, key string) {
	s.t.Helper()
	for n, trigger := range []string{"one", "two"} {
		s.say(s.a, d, "store", key, trigger, "sole-"+trigger, firesAt(n))
	}
	s.say(s.a, d, "acquire", key, firesAt(9), "10")
	s.say(s.a, d, "fire", key, "one", firesAt(5))
	s.say(s.b, d, "recover", key)
	s.say(s.a, d, "silent", key)
	s.say(s.b, d, "recover", key)
	s.say(s.b, d, "states", key)
	s.say(s.b, d, "acquire", key, firesAt(9), "10")
	s.say(s.a, d, "fire", key, "three", firesAt(9))
	s.say(s.b, d, "states", key)
}

// firings lets two schedulers acquire and fire the triggers of one store concurrently, each trigger
// once. It calls midway when half of the triggers have been fired.
func (s *side) firings(d dialect, key string, midway func() error) {
	s.t.Helper()
	const stored = 2 * turns
	for n := range stored {
		s.say(s.a, d, "store", key, fmt.Sprintf("trigger-%02d", n), "job", firesAt(n))
	}
	fired := make(chan string, 2*stored)
	failures := make(chan error, 2)
	var half sync.Once
	for _, client := range []*driver{s.a, s.b} {
		go func() {
			failures <- fireAll(client, d, key, func(trigger string) (err error) {
				fired <- trigger
				if len(fired) >= stored/2 {
					half.Do(func() { err = midway() })
				}
				return err
			})
		}()
	}
	for range 2 {
		if err := <-failures; err != nil {
			s.t.Errorf("%s: firing the triggers of %s: %v", d.name, key, err)
		}
	}
	close(fired)
	var all []string
	for trigger := range fired {
		all = append(all, trigger)
	}
	slices.Sort(all)
	s.note("%s: fired of %s: %v", d.name, key, all)
	if len(all) != stored || len(slices.Compact(all)) != stored {
		s.t.Errorf("%s: %s has %d triggers; fired: %v", d.name, key, stored, all)
	}
	s.say(s.a, d, "states", key)
}

// fireAll acquires and fires one trigger after another; a fired trigger next fires in an hour. It
// ends when no trigger fires earlier.
func fireAll(client *driver, d dialect, key string, tell func(trigger string) error) error {
	for {
		acquired, err := client.ask(d.name, "acquire", key, firesAt(1000), "1")
		if err != nil || acquired == "[]" {
			return err
		}
		trigger := strings.Trim(acquired, "[]")
		n, err := strconv.Atoi(strings.TrimPrefix(trigger, "trigger-"))
		if err != nil {
			return fmt.Errorf("acquired: %s", acquired)
		}
		if reply, err := client.ask(d.name, "fire", key, trigger, firesAt(3600+n)); err != nil || reply != "fired" {
			return fmt.Errorf("firing %s: %s, %v", trigger, reply, err)
		}
		if err := tell(trigger); err != nil {
			return err
		}
		if reply, err := client.ask(d.name, "complete", key, trigger); err != nil || reply != "0" {
			return fmt.Errorf("completing %s: %s, %v", trigger, reply, err)
		}
	}
}
