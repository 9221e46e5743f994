//go:build integration

package operate

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// runLock runs `lock KEY FLAGS -- sh -c SCRIPT` with a proxy until it ends.
func runLock(t *testing.T, addr, flags, script string) outcome {
	t.Helper()
	args := append([]string{"lock", "k", "--addr", addr}, strings.Fields(flags)...)
	return runProxy(t, append(args, "--", "sh", "-c", script)...)
}

// wantResult checks the exit code, the output, and the beginning of the error output.
func (o outcome) wantResult(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	if o.code != code || o.stdout != stdout || !strings.HasPrefix(o.stderr, stderr) || stderr == "" && o.stderr != "" {
		t.Errorf("exit code %d, printed %q and %q; want %d, %q and %q", o.code, o.stdout, o.stderr, code, stdout, stderr)
	}
}

// TestLockCommand checks that lock holds the lock while the command runs, and returns the command's
// exit code.
func TestLockCommand(t *testing.T) {
	t.Parallel()
	f := kit.StartFleet(t)
	addr := f.Proxies[0].Addr()
	client := kit.Connect(t, f.Proxies[0])
	host, port, _ := strings.Cut(addr, ":")
	redisCLI := fmt.Sprintf("redis-cli -h %s -p %s ", host, port)
	wantFree := func() {
		t.Helper()
		if info := kit.ReplyText(kit.Do(t, client, "LOCKINFO", "k")); !strings.HasPrefix(info, "[state free ") {
			t.Errorf("after the command: %s", info)
		}
	}
	runLock(t, addr, "", redisCLI+"LOCK k other PX 1000; exit 7").wantResult(t, 7, "\n", "")
	wantFree()
	// The command outlasts the TTL: the lock was renewed.
	runLock(t, addr, "--ttl 2s", "sleep 5; "+redisCLI+"LOCK k other PX 1000").wantResult(t, 0, "\n", "")
	wantFree()
	runLock(t, "redis://"+addr, "--wait 0s", "kill -9 $$").wantResult(t, 128+9, "", "")
	wantFree()
	runProxy(t, "lock", "--addr", addr, "k", "--", "/no/such/program").wantResult(t, 127, "",
		`redlock-proxy: the command "/no/such/program" was not found`)
	folder := t.TempDir()
	runProxy(t, "lock", "--addr", addr, "k", "--", folder).wantResult(t, 126, "",
		fmt.Sprintf("redlock-proxy: the command %q cannot be run: permission denied", folder))
	wantFree()

	kit.WantGrant(t, client, "LOCK", "k", "other", "PX", "60000")
	runLock(t, addr, "--wait 0s", "echo ran").wantResult(t, 120, "", "redlock-proxy: the lock \"k\" is held by another client\n")
	runLock(t, addr, "--wait 50ms", "echo ran").wantResult(t, 120, "",
		"redlock-proxy: the lock \"k\" is held by another client\n")
	waiting := startCommand(t, nil, "lock", "k", "--addr", addr, "--wait", "1m", "--", "echo", "ran")
	kit.WantBlocked(t, f.Proxies[0], 1)
	kit.Want(t, client, int64(1), "UNLOCK", "k", "other")
	waiting.wait(t).wantResult(t, 0, "ran\n", "")
	wantFree()

	runLock(t, "127.0.0.1:1", "", "echo ran").wantResult(t, 122, "",
		`redlock-proxy: the lock "k" was not granted by 127.0.0.1:1: connection refused`)
	runLock(t, "rediss://"+addr, "", "echo ran").wantResult(t, 122, "", `redlock-proxy: the lock "k" was not granted by `+addr+`: it does not use TLS: use redis:// instead of rediss://`)
	runLock(t, f.Masters[0].Addr(), "", "echo ran").wantResult(t, 122, "",
		`redlock-proxy: the lock "k" was not granted by `+f.Masters[0].Addr()+`: ERR unknown command`)
	runLock(t, addr, "--ttl 25h", "echo ran").wantResult(t, 122, "", `redlock-proxy: the lock "k" was not granted by `+addr+`: ERR invalid expire time in 'lock' command: the TTL exceeds max-ttl`)
	runLock(t, addr, "--ttl 1ms", "echo ran").wantResult(t, 122, "",
		`redlock-proxy: the lock "k" was not granted by `+addr+`: ERR invalid expire time`)
}

// TestLockCommandLine checks that mistakes are reported in one line.
func TestLockCommandLine(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"lock":                                  "no key is given; usage: redlock-proxy lock KEY … -- COMMAND",
		"lock -- ls":                            "no key is given; usage: redlock-proxy lock KEY … -- COMMAND",
		"lock k":                                "no command is given; usage: redlock-proxy lock KEY … -- COMMAND",
		"lock k --":                             "no command is given; usage: redlock-proxy lock KEY … -- COMMAND",
		"lock k ls":                             "no command is given; usage: redlock-proxy lock KEY … -- COMMAND",
		"lock k --slots 0 -- ls":                "--slots: 0 is less than 1",
		"lock k --shared --slots 2 -- ls":       "--shared and --slots cannot be combined; use one of them",
		"lock a b --shared -- ls":               "--shared and --slots are for one key; lock several keys without them",
		"lock k --tll 1s -- ls":                 "flag provided but not defined: -tll (did you mean --ttl? see redlock-proxy lock --help)",
		"lock k --ttl -- ls":                    `--ttl: "--" is not a duration (a number and a unit, such as "100ms" or "24h")`,
		"lock k --ttl 0s -- ls":                 "--ttl: 0s is less than 1ms",
		"lock k --wait -1s -- ls":               "--wait: -1s is less than 0s",
		"lock k --addr nowhere -- ls":           `--addr: "nowhere" is not host:port`,
		"lock k --addr http://u:secret@h -- ls": "--addr: http://u:xxxxx@h is not the URL of a proxy",
		"lock k --password-file /no/such -- ls": "--password-file: open /no/such: no such file or directory",
	} {
		wantFailure(t, runProxy(t, strings.Fields(args)...), "redlock-proxy: "+want)
	}
}

// startedCommand is a running command of the proxy, and its output so far.
type startedCommand struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

func startCommand(t *testing.T, env []string, args ...string) *startedCommand {
	t.Helper()
	r := &startedCommand{cmd: kit.ProxyCommand(t, args...)}
	r.cmd.Env = append(r.cmd.Env, env...)
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	r.cmd.WaitDelay = kit.WaitLimit
	kit.Must(t, r.cmd.Start())
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	return r
}

func (r *startedCommand) wait(t *testing.T) outcome {
	t.Helper()
	limit := time.AfterFunc(kit.WaitLimit, func() { _ = r.cmd.Process.Kill() })
	defer limit.Stop()
	if err := r.cmd.Wait(); err != nil && r.cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return outcome{r.cmd.ProcessState.ExitCode(), r.stdout.String(), r.stderr.String()}
}

// trapSignals returns a command that creates the file, reports signals, and continues unless
// exitCommand exits.
func trapSignals(file, exitCommand string) []string {
	return []string{"sh", "-c", `trap "echo told;` + exitCommand + `" TERM INT; touch ` + file + `; while :; do sleep 0.05; done`}
}

func awaitFile(t *testing.T, file string) {
	t.Helper()
	kit.Await(t, "the command runs", func() bool { _, err := os.Stat(file); return err == nil })
}

// TestLockCommandLosesLock checks that lock terminates its command if the lock is lost, or cannot
// be extended.
func TestLockCommandLosesLock(t *testing.T) {
	t.Parallel()
	const lossMessage = "redlock-proxy: the lock was lost: sending SIGTERM to the command\n"
	for _, test := range []struct {
		name, exitCommand, stderr string
		loseLock                  func(t *testing.T, f *kit.Fleet)
	}{
		{"taken from it", "",
			lossMessage + "redlock-proxy: the command is still running 3s after SIGTERM: killing it\nredlock-proxy: the lock was lost: it expired or was released\n", func(t *testing.T, f *kit.Fleet) {
				kit.Want(t, kit.Connect(t, f.Proxies[0]), int64(1), "FORCEUNLOCK", "k")
			}},
		{"no masters", "exit 3", lossMessage + "redlock-proxy: the lock was lost: it could not be extended in time: NOQUORUM ",
			func(t *testing.T, f *kit.Fleet) {
				for _, master := range f.Masters[:3] {
					kit.Must(t, master.Kill())
				}
			}},
		{"no proxy", "exit 0", lossMessage + "redlock-proxy: the lock was lost: it could not be extended in time: ",
			func(t *testing.T, f *kit.Fleet) {
				kit.Must(t, f.Proxies[0].Kill())
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := kit.StartFleet(t)
			file := filepath.Join(t.TempDir(), "runs")
			r := startCommand(t, nil, append([]string{"lock", "k", "--ttl", "6s", "--grace", "3s", "--addr",
				f.Proxies[0].Addr(), "--"}, trapSignals(file, test.exitCommand)...)...)
			awaitFile(t, file)
			test.loseLock(t, f)
			r.wait(t).wantResult(t, 121, "told\n", test.stderr)
		})
	}
	f := kit.StartFleet(t)
	_, port, _ := strings.Cut(f.Proxies[0].Addr(), ":")
	runLock(t, f.Proxies[0].Addr(), "", "redis-cli -p "+port+" UNLOCK k $REDLOCK_TOKEN").wantResult(t, 121, "1\n",
		"redlock-proxy: the lock was lost: it expired or was released\n")
}

// holdUntilEnd returns a command that creates the file name.runs, and ends when name.end exists.
func holdUntilEnd(name string) []string {
	return []string{"--", "sh", "-c", "touch " + name + ".runs; while [ ! -e " + name + ".end ]; do sleep 0.05; done"}
}

// startHolder starts lock with the arguments, and waits until its command runs. The returned
// function ends the command.
func startHolder(t *testing.T, args ...string) (end func()) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "holder")
	r := startCommand(t, nil, append(append([]string{"lock"}, args...), holdUntilEnd(name)...)...)
	awaitFile(t, name+".runs")
	return func() {
		t.Helper()
		kit.Must(t, os.WriteFile(name+".end", nil, 0o600))
		r.wait(t).wantResult(t, 0, "", "")
	}
}

// TestLockCommandSlots checks that at most n commands run under a lock with n slots.
func TestLockCommandSlots(t *testing.T) {
	t.Parallel()
	f := kit.StartFleet(t)
	addr := f.Proxies[0].Addr()
	flags := []string{"k", "--slots", "2", "--addr", addr}
	endFirst := startHolder(t, flags...)
	endSecond := startHolder(t, flags...)
	runLock(t, addr, "--slots 2 --wait 0s", "echo ran").wantResult(t, 120, "", "redlock-proxy: the lock \"k\" is held by another client\n")
	runLock(t, addr, "--slots 3", "echo ran").wantResult(t, 122, "",
		`redlock-proxy: the lock "k" was not granted by `+addr+`: ERR the lock is held with SLOTS 2, and this command requests SLOTS 3`)
	endFirst()
	runLock(t, addr, "--slots 2 --wait 0s", "echo ran").wantResult(t, 0, "ran\n", "")
	endSecond()
	runLock(t, addr, "--wait 0s", "echo ran").wantResult(t, 0, "ran\n", "")
}

// TestLockCommandShared checks that commands with --shared run together, and keep out other
// clients.
func TestLockCommandShared(t *testing.T) {
	t.Parallel()
	f := kit.StartFleet(t)
	addr := f.Proxies[0].Addr()
	end := startHolder(t, "k", "--shared", "--addr", addr)
	runLock(t, addr, "--shared --wait 0s", "echo ran").wantResult(t, 0, "ran\n", "")
	runLock(t, addr, "--wait 0s", "echo ran").wantResult(t, 120, "", "redlock-proxy: the lock \"k\" is held by another client\n")
	end()
	runLock(t, addr, "--wait 0s", "echo ran").wantResult(t, 0, "ran\n", "")
}

// TestLockCommandSeveralKeys checks that a command holds all of its keys or none, and ends when it
// loses one.
func TestLockCommandSeveralKeys(t *testing.T) {
	t.Parallel()
	f := kit.StartFleet(t)
	addr, client := f.Proxies[0].Addr(), kit.Connect(t, f.Proxies[0])
	end := startHolder(t, "a", "b", "--ttl", "2s", "--addr", addr)
	for _, key := range []string{"a", "b"} {
		kit.Want(t, client, nil, "LOCK", key, "other", "PX", "1000")
	}
	runProxy(t, "lock", "b", "c", "--wait", "0s", "--addr", addr, "--", "echo", "ran").wantResult(t, 120, "",
		"redlock-proxy: one of the keys \"b\", \"c\" is held by another client\n")
	runProxy(t, "lock", "c", "c", "--addr", addr, "--", "echo", "ran").wantResult(t, 122, "",
		`redlock-proxy: the locks "c", "c" were not granted by `+addr+`: ERR key 'c' appears twice in 'mlock' command`)
	end()
	for _, key := range []string{"a", "b", "c"} {
		kit.WantGrant(t, client, "LOCK", key, "other", "PX", "60000")
		kit.Want(t, client, int64(1), "UNLOCK", key, "other")
	}

	file := filepath.Join(t.TempDir(), "runs")
	r := startCommand(t, nil, append([]string{"lock", "a", "b", "--addr", addr, "--"}, trapSignals(file, "exit 3")...)...)
	awaitFile(t, file)
	kit.Want(t, client, int64(1), "FORCEUNLOCK", "b")
	r.wait(t).wantResult(t, 121, "told\n", "redlock-proxy: the lock was lost: sending SIGTERM to the command\n")
}

// TestLockCommandEnvironment checks the variables that the command gets. With them, the command can
// use the lock, and other commands of redlock-proxy run.
func TestLockCommandEnvironment(t *testing.T) {
	t.Parallel()
	f := kit.StartFleet(t)
	addr := f.Proxies[0].Addr()
	host, port, _ := strings.Cut(addr, ":")
	const show = `printf '%s/' "$REDLOCK_KEY" "${REDLOCK_FENCE-none}"; `
	runProxyWith(t, []string{"REDLOCK_FENCE=7", "REDLOCK_KEY=outer"}, "lock", "a", "b c", "--addr", addr, "--", "sh", "-c",
		show).wantResult(t, 0, "a\nb c/none/", "")
	runLock(t, addr, "--fence", `[ "$REDLOCK_FENCE" -gt 1000 ] && redis-cli -h `+host+" -p "+port+
		` EXTEND "$REDLOCK_KEY" "$REDLOCK_TOKEN" PX 60000 | grep -c '^[0-9]*$'`).wantResult(t, 0, "1\n", "")
	runLock(t, addr, "", binary(t)+" serve --check-config --master redis://127.0.0.1:1 >/dev/null").wantResult(t, 0, "", "")
}

// TestLockCommandContinues kills or stops a proxy while a command holds a lock through it. The next
// proxy takes the renewals over, and finally releases the lock.
func TestLockCommandContinues(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for name, stopProxy := range map[string]func(*harness.Proxy) error{"killed": (*harness.Proxy).Kill,
		"stopped": (*harness.Proxy).Pause} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := kit.StartFleet(t)
			f.Proxies = append(f.Proxies, kit.StartProxy(t, redistest.URLs(f.Masters)))
			other := kit.Connect(t, f.Proxies[1])
			file := filepath.Join(t.TempDir(), "runs")
			r := startCommand(t, nil, "lock", "k", "--ttl", "6s", "--addr", f.Proxies[0].Addr(), "--addr", f.Proxies[1].Addr(),
				"--", "sh", "-c", "touch "+file+"; sleep 12; exit 5")
			awaitFile(t, file)
			end := time.Now().Add(10 * time.Second) // before the command ends
			kit.Must(t, stopProxy(f.Proxies[0]))
			kit.Await(t, "the other proxy renews the lock", func() bool {
				return strings.HasSuffix(kit.ReplyText(kit.Do(t, other, "LOCKINFO", "k")), "kept 1]")
			})
			for ; time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				if reply := kit.Do(t, other, "LOCK", "k", "other", "PX", "1000"); reply != nil {
					t.Fatalf("another client's LOCK: %v", reply)
				}
			}
			r.wait(t).wantResult(t, 5, "", "")
			kit.WantGrant(t, other, "LOCK", "k", "other", "PX", "1000")
		})
	}
}

// TestLockCommandSignals checks that lock passes signals to its command. Before the command runs, a
// signal ends the wait, and lock leaves the queue.
func TestLockCommandSignals(t *testing.T) {
	t.Parallel()
	f := kit.StartFleet(t)
	addr := f.Proxies[0].Addr()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		file := filepath.Join(t.TempDir(), "runs")
		r := startCommand(t, nil, append([]string{"lock", "k", "--addr", addr, "--"}, trapSignals(file, "exit 5")...)...)
		awaitFile(t, file)
		kit.Must(t, r.cmd.Process.Signal(signal))
		r.wait(t).wantResult(t, 5, "told\n", "")
	}
	client := kit.Connect(t, f.Proxies[0])
	kit.WantGrant(t, client, "LOCK", "k", "other", "PX", "60000")
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		r := startCommand(t, nil, "lock", "k", "--addr", addr, "--wait", "1m", "--", "echo", "ran")
		kit.WantBlocked(t, f.Proxies[0], 1)
		kit.Must(t, r.cmd.Process.Signal(signal))
		r.wait(t).wantResult(t, 128+int(signal), "", "redlock-proxy: "+signal.String()+" while waiting for the lock\n")
		kit.WantBlocked(t, f.Proxies[0], 0)
	}
	kit.Want(t, client, int64(1), "UNLOCK", "k", "other")

	file := filepath.Join(t.TempDir(), "runs")
	r := startCommand(t, nil, append([]string{"lock", "k", "--addr", addr, "--"}, trapSignals(file, "exit 5")...)...)
	awaitFile(t, file)
	// After the kill no process extends the lock, so the command gets SIGTERM.
	kit.Must(t, r.cmd.Process.Kill())
	_ = r.cmd.Wait()
	if r.stdout.String() != "told\n" {
		t.Errorf("after the end of its parent the command said %q", r.stdout.String())
	}
}

// TestLockCommandLogsIn checks that the password comes from redis-cli's variable or a file, and is
// never printed.
func TestLockCommandLogsIn(t *testing.T) {
	t.Parallel()
	upstream, masters := kit.StartRedis(t, "--requirepass", "topsecret"), kit.StartMasters(t)
	proxy := kit.StartProxy(t, redistest.URLs(masters), "--upstream", upstream.URL())
	file := filepath.Join(t.TempDir(), "password")
	kit.Must(t, os.WriteFile(file, []byte("topsecret\n"), 0o600))
	args := []string{"lock", "k", "--addr", proxy.Addr()}
	command := []string{"--", "echo", "ran"}
	runProxy(t, append(append(args, "--password-file", file), command...)...).wantResult(t, 0, "ran\n", "")
	runProxyWith(t, []string{"REDISCLI_AUTH=topsecret"}, append(args, command...)...).wantResult(t, 0, "ran\n", "")
	runProxyWith(t, []string{"REDISCLI_AUTH=wrongsecret"}, append(args, command...)...).wantResult(t, 122, "",
		`redlock-proxy: the lock "k" was not granted by `+proxy.Addr()+`: WRONGPASS `)
	runProxy(t, append(args, command...)...).wantResult(t, 122, "",
		`redlock-proxy: the lock "k" was not granted by `+proxy.Addr()+`: NOAUTH `)
	if log := proxy.Log(); strings.Contains(log, "secret") {
		t.Errorf("the log:\n%s", log)
	}
}

// TestLockCommandTLS checks that the files of the flags are sufficient: lock trusts the proxy, and
// the proxy accepts its client.
func TestLockCommandTLS(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startTLS(t)
	r.proxy = kit.StartProxy(t, r.masters, append(r.args, "--tls-client-ca", r.clientCA.File)...)
	clientPair, addr := r.clientCA.Issue(t), "rediss://"+r.proxy.Addr()
	runLock(t, addr, "--ca "+r.ca.File+" --client-cert "+clientPair.Cert+" --client-key "+clientPair.Key, "exit 7").wantResult(t, 7, "", "")
	refusal := `redlock-proxy: the lock "k" was not granted by ` + r.proxy.Addr() + ": "
	runLock(t, addr, "--client-cert "+clientPair.Cert+" --client-key "+clientPair.Key, "echo ran").wantResult(t, 122, "",
		refusal+"tls: failed to verify certificate")
	runLock(t, addr, "--ca "+r.ca.File, "echo ran").wantResult(t, 122, "", refusal)
	runLock(t, r.proxy.Addr(), "--ca "+r.ca.File, "echo ran").wantResult(t, 1, "",
		"redlock-proxy: --ca, --client-cert and --client-key need TLS")
	runLock(t, addr, "--client-cert "+clientPair.Cert, "echo ran").wantResult(t, 1, "",
		"redlock-proxy: only one of --client-cert and --client-key is set; set both or neither\n")
	runLock(t, addr, "--ca "+clientPair.Key, "echo ran").wantResult(t, 1, "", "redlock-proxy: ca: ")
}
