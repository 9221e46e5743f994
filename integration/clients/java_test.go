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
	compareLocks(t, []dialect{
		{name: "jedis", grantOutput: "OK", holderOnly: true, canExtend: true},
		{name: "spring", grantOutput: "true", holderOnly: true, canExtend: true, extraCheck: checkNoScripts},
		{name: "spring-7.0", grantOutput: "true", holderOnly: true, canExtend: true, extraCheck: checkSharedToken},
		{name: "spring-5", grantOutput: "true", holderOnly: true, canExtend: true},
		{name: "spring-pubsub", grantOutput: "true", holderOnly: true, canExtend: true, extraCheck: checkPublishedRelease},
		{name: "shedlock", grantOutput: "OK", canExtend: true, extraCheck: checkShedLock},
		{name: "shedlock-safe", grantOutput: "OK", holderOnly: true, canExtend: true},
		{name: "redlock4j", grantOutput: "OK", holderOnly: true, canExtend: true},
		{name: "redisson", grantOutput: "granted", holderOnly: true, extraCheck: checkReentrance},
		{name: "quartz", grantOutput: "OK", holderOnly: true, extraCheck: checkTriggers},
		{name: "quartz-data-upstream", grantOutput: "OK", holderOnly: true, extraCheck: checkTriggers},
		{name: "jedis-lock", grantOutput: "true", withoutTTL: true},
	}, javaLocks(t)...)
}

// javaLocks compiles the Java program, and returns the command that runs it.
func javaLocks(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("javac"); err != nil {
		redistest.SkipMissing(t, "a JDK of version 17 or newer: apt-get install default-jdk-headless")
	}
	sources, err := filepath.Glob(programPath("java/*.java"))
	kit.Must(t, err)
	classes := t.TempDir()
	args := append([]string{"-Xlint:all,-serial", "-Werror", "-d", classes}, sources...)
	if output, err := exec.Command("javac", args...).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, output)
	}
	// The program runs too briefly for optimizing compilation to pay off.
	return []string{"java", "-XX:TieredStopAtLevel=1", "-cp", classes, "Locks"}
}

// checkNoScripts tests that the proxy accepts DELEX and SET IFEQ, regardless of the version of the
// masters. So the library needs no scripts to release and extend a lock.
func checkNoScripts(s *lockService, d dialect) {
	s.t.Helper()
	checkSharedToken(s, d)
	result, err := s.a.ask(d.name, "comparing", d.key("more"))
	kit.Must(s.t, err)
	if s.masters != nil && result != "true" {
		s.t.Errorf("%s: DELEX or SET IFEQ was refused", d.name)
	}
}

// checkReentrance tests that a holder can take the lock again, and must release it once for each
// grant.
func checkReentrance(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.wantGrant(s.a, d, key, longLease)
	s.wantGrant(s.a, d, key, longerLease)
	s.wantRemaining(d, key, longLease, longerLease)
	s.wantRefusal(s.b, d, key)
	s.run(s.a, d, "release", key)
	s.wantRefusal(s.b, d, key)
	s.run(s.a, d, "release", key)
	s.run(s.a, d, "release", key)
	s.wantGrant(s.b, d, key, longLease)
	s.run(s.b, d, "release", key)
}

// checkSharedToken tests that all locks of a process have one token, so that the process is granted
// a lock that it already holds.
func checkSharedToken(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.wantGrant(s.a, d, key, longLease)
	s.wantGrant(s.a, d, key, longerLease)
	s.wantRemaining(d, key, longLease, longerLease)
	s.wantRefusal(s.b, d, key)
	s.run(s.a, d, "release", key)
	s.run(s.a, d, "release", key)
}

// checkPublishedRelease tests that a release is published once, on the ordinary channel, and wakes
// the waiter.
func checkPublishedRelease(s *lockService, d dialect) {
	s.t.Helper()
	checkSharedToken(s, d)
	key := d.key("published")
	listener, err := redistest.Dial(s.dataServer.Addr(), kit.WaitLimit)
	kit.Must(s.t, err)
	defer listener.Close()
	kit.Do(s.t, listener, "PSUBSCRIBE", "registry-channel:*")
	s.wantGrant(s.a, d, key, longLease)
	kit.Must(s.t, s.b.send(d.name, "wait", key, kit.Millis(longLease)))
	kit.AwaitShortly(s.t, func() error { return checkTwoSubscribers(s.dataServer) })
	s.run(s.a, d, "release", key)
	reply, err := s.b.awaitReply()
	kit.Must(s.t, err)
	s.note("b: waited for %s: %s", key, reply)
	s.run(s.a, d, "release", key)
	s.run(s.b, d, "release", key)
	kit.Do(s.t, s.reader, "PUBLISH", "registry-channel:the-end", "the end")
	for message := ""; message != "the end"; {
		received, err := listener.Receive()
		kit.Must(s.t, err)
		message = fmt.Sprint(received.([]any)[3])
		s.note("heard: %v", received)
	}
}

// checkTwoSubscribers returns an error unless two clients have subscribed: the listener and the
// waiter.
func checkTwoSubscribers(server *redistest.Server) error {
	client, err := redistest.Dial(server.Addr(), kit.WaitLimit)
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

// checkShedLock tests that any client can extend and release a lock. It also shortens a lock, so
// that another client can take the lock soon.
func checkShedLock(s *lockService, d dialect) {
	s.t.Helper()
	key := d.key("more")
	s.wantGrant(s.a, d, key, longLease)
	s.run(s.b, d, "extend", key, kit.Millis(longerLease))
	s.note("then: %v", s.values(d, key))
	s.wantRemaining(d, key, longLease, longerLease)
	s.run(s.b, d, "release", key)
	s.run(s.a, d, "extend", key, kit.Millis(longLease))
	s.wantGrant(s.a, d, key, longLease)
	s.run(s.a, d, "extend", key, kit.Millis(coarseLease))
	s.wantGrantSoon(s.b, d, key, longLease)
	s.run(s.a, d, "release", key) // too late: this removes the lock of client b
	s.run(s.b, d, "release", key)
}

// checkTriggers tests two schedulers that share the triggers of a job store.
func checkTriggers(s *lockService, d dialect) {
	s.t.Helper()
	s.checkExclusiveJob(d, d.key("sole"))
	s.checkDeadScheduler(d, d.key("dead"))
	s.checkFirings(d, d.key("firings"), func() error { return nil })
	kit.Must(s.t, s.killMinority())
	s.checkExclusiveJob(d, d.key("sole-killed"))
	kit.Must(s.t, s.restartMinority())
	s.checkFirings(d, d.key("firings-killed"), s.killMinority)
	s.checkDeadScheduler(d, d.key("dead-killed"))
	kit.Must(s.t, s.restartMinority())
}

// fireTime returns the time at which a trigger fires, in milliseconds. The time is fixed, so that
// all transcripts have the same time.
func fireTime(n int) string { return fmt.Sprint(1_795_000_000_000 + 1000*n) }

// checkExclusiveJob tests triggers of a job that must not run twice at the same time. The other
// triggers wait until the run of the first trigger is complete.
func (s *lockService) checkExclusiveJob(d dialect, key string) {
	s.t.Helper()
	for n, trigger := range []string{"first", "second", "third"} {
		s.run(s.a, d, "store", key, trigger, "sole", fireTime(n))
	}
	s.run(s.b, d, "store", key, "first", "sole", fireTime(9))
	s.run(s.b, d, "acquire", key, fireTime(9), "10")
	s.run(s.b, d, "states", key)
	s.run(s.a, d, "pause", key, "third")
	s.run(s.a, d, "fire", key, "first", fireTime(9))
	s.run(s.a, d, "states", key)
	s.run(s.a, d, "acquire", key, fireTime(9), "10")
	s.run(s.a, d, "recover", key)
	s.run(s.a, d, "resume", key, "third")
	s.run(s.a, d, "store", key, "fourth", "sole", fireTime(3))
	s.run(s.a, d, "states", key)
	s.run(s.b, d, "complete", key, "first")
	s.run(s.a, d, "acquire", key, fireTime(8), "10")
	s.run(s.a, d, "give-back", key, "second")
	s.run(s.a, d, "give-back", key, "second")
	s.run(s.b, d, "states", key)
	for _, trigger := range []string{"first", "second", "third", "fourth", "fourth"} {
		s.run(s.a, d, "remove", key, trigger)
	}
	s.run(s.b, d, "states", key)
}

// checkDeadScheduler tests that a scheduler that has been silent for too long loses its acquired
// and blocked triggers.
func (s *lockService) checkDeadScheduler(d dialect, key string) {
	s.t.Helper()
	for n, trigger := range []string{"one", "two"} {
		s.run(s.a, d, "store", key, trigger, "sole-"+trigger, fireTime(n))
	}
	s.run(s.a, d, "acquire", key, fireTime(9), "10")
	s.run(s.a, d, "fire", key, "one", fireTime(5))
	s.run(s.b, d, "recover", key)
	s.run(s.a, d, "silent", key)
	s.run(s.b, d, "recover", key)
	s.run(s.b, d, "states", key)
	s.run(s.b, d, "acquire", key, fireTime(9), "10")
	s.run(s.a, d, "fire", key, "three", fireTime(9))
	s.run(s.b, d, "states", key)
}

// checkFirings lets two schedulers acquire and fire the triggers of one store concurrently, each
// trigger once. It calls midpointAction when half of the triggers have been fired.
func (s *lockService) checkFirings(d dialect, key string, midpointAction func() error) {
	s.t.Helper()
	const triggerCount = 2 * grantsPerClient
	for n := range triggerCount {
		s.run(s.a, d, "store", key, fmt.Sprintf("trigger-%02d", n), "job", fireTime(n))
	}
	firedTriggers := make(chan string, 2*triggerCount)
	failures := make(chan error, 2)
	var midpointOnce sync.Once
	for _, client := range []*driver{s.a, s.b} {
		go func() {
			failures <- fireAll(client, d, key, func(trigger string) (err error) {
				firedTriggers <- trigger
				if len(firedTriggers) >= triggerCount/2 {
					midpointOnce.Do(func() { err = midpointAction() })
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
	close(firedTriggers)
	var list []string
	for trigger := range firedTriggers {
		list = append(list, trigger)
	}
	slices.Sort(list)
	s.note("%s: fired of %s: %v", d.name, key, list)
	if len(list) != triggerCount || len(slices.Compact(list)) != triggerCount {
		s.t.Errorf("%s: %s has %d triggers; fired: %v", d.name, key, triggerCount, list)
	}
	s.run(s.a, d, "states", key)
}

// fireAll acquires and fires one trigger after another. Each fired trigger gets a next time that is
// too late for it to be acquired again. fireAll returns when no trigger can be acquired.
func fireAll(client *driver, d dialect, key string, onFire func(trigger string) error) error {
	for {
		reply, err := client.ask(d.name, "acquire", key, fireTime(1000), "1")
		if err != nil || reply == "[]" {
			return err
		}
		trigger := strings.Trim(reply, "[]")
		n, err := strconv.Atoi(strings.TrimPrefix(trigger, "trigger-"))
		if err != nil {
			return fmt.Errorf("acquired: %s", reply)
		}
		if reply, err := client.ask(d.name, "fire", key, trigger, fireTime(3600+n)); err != nil || reply != "fired" {
			return fmt.Errorf("firing %s: %s, %v", trigger, reply, err)
		}
		if err := onFire(trigger); err != nil {
			return err
		}
		if reply, err := client.ask(d.name, "complete", key, trigger); err != nil || reply != "0" {
			return fmt.Errorf("completing %s: %s, %v", trigger, reply, err)
		}
	}
}
