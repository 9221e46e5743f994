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

// parentVariable is the environment variable that makes TestChildDiesWithItsParent run as the
// parent.
const parentVariable = "HARNESS_TEST_PARENT"

// TestChildDiesWithItsParent checks that a child ends when its parent is killed. The test binary
// runs itself as the parent, which starts a child and prints its process ID.
func TestChildDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED, NOT TESTED: only Linux can tie a child's life to its parent's")
	}
	if os.Getenv(parentVariable) != "" {
		runAsParent()
	}
	parent, err := Start(os.Args[0], []string{"-test.run=^TestChildDiesWithItsParent$"},
		append(os.Environ(), parentVariable+"=1"))
	must(t, err)
	line, err := parent.WaitLine(func(line string) bool { return strings.HasPrefix(line, "child ") }, waitLimit)
	must(t, err)
	child, err := strconv.Atoi(strings.TrimPrefix(line, "child "))
	must(t, err)
	if !isRunning(child) {
		t.Fatalf("child %d does not run", child)
	}
	must(t, parent.Kill())
	for deadline := time.Now().Add(waitLimit); isRunning(child); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("child %d outlives its parent", child)
		}
	}
}

// runAsParent runs as the parent. It never returns, because its test kills it.
func runAsParent() {
	child, err := Start(sleepCommand())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("child", child.PID())
	select {}
}

// TestChildOutlivesStartingThread checks that a child keeps running after the thread that called
// Start has ended.
func TestChildOutlivesStartingThread(t *testing.T) {
	started := make(chan *Process)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		child, err := Start(sleepCommand())
		if err != nil {
			t.Error(err)
		}
		started <- child
	}()
	child := <-started
	if child == nil {
		return
	}
	if code, err := child.Wait(quietTime); err == nil {
		t.Errorf("the child ended with the thread that started it: %d", code)
	}
	must(t, child.Kill())
}

// sleepCommand returns a program that ends only when it is killed.
func sleepCommand() (path string, args, env []string) {
	path, err := exec.LookPath("sleep")
	if err != nil {
		path = "/bin/sleep"
	}
	return path, []string{"60"}, nil
}

// isRunning reports whether a process exists and is not a zombie.
func isRunning(pid int) bool {
	stat, err := readProcStat(pid)
	return err == nil && stat.state != "Z" && stat.state != "X"
}
