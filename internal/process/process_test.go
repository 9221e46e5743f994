package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// orphanVariable is the environment variable that makes TestChildDiesWithItsParent play the parent.
const orphanVariable = "HARNESS_TEST_PARENT"

// TestChildDiesWithItsParent runs itself as a parent that starts a child, prints the child's ID and
// is killed.
func TestChildDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED, NOT TESTED: only Linux can tie a child's life to its parent's")
	}
	if os.Getenv(orphanVariable) != "" {
		playParent()
	}
	parent, err := Start(os.Args[0], []string{"-test.run=^TestChildDiesWithItsParent$"},
		append(os.Environ(), orphanVariable+"=1"))
	check(t, err)
	line, err := parent.WaitLine(func(line string) bool { return strings.HasPrefix(line, "child ") }, waitLimit)
	check(t, err)
	child, err := strconv.Atoi(strings.TrimPrefix(line, "child "))
	check(t, err)
	if !running(child) {
		t.Fatalf("child %d does not run", child)
	}
	check(t, parent.Kill())
	for end := time.Now().Add(waitLimit); running(child); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("child %d outlives its parent", child)
		}
	}
}

// playParent plays the parent. It never returns, because its test kills it.
func playParent() {
	child, err := Start(sleeper())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("child", child.PID())
	select {}
}

// TestChildOutlivesAThread: the thread of the goroutine that called Start ends, and the child keeps
// running.
func TestChildOutlivesAThread(t *testing.T) {
	started := make(chan *Process)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		child, err := Start(sleeper())
		if err != nil {
			t.Error(err)
		}
		started <- child
	}()
	child := <-started
	if child == nil {
		return
	}
	if code, err := child.Wait(silence); err == nil {
		t.Errorf("the child ended with its starter's thread: %d", code)
	}
	check(t, child.Kill())
}

// sleeper returns a program that ends only when it is killed.
func sleeper() (path string, args, env []string) {
	path, err := exec.LookPath("sleep")
	if err != nil {
		path = "/bin/sleep"
	}
	return path, []string{"60"}, nil
}

// running reports whether a process exists and is not a zombie.
func running(pid int) bool {
	stat, err := readProcStat(pid)
	return err == nil && stat.state != "Z" && stat.state != "X"
}
