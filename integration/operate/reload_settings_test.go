//go:build integration

package operate

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"redlock-proxy/conf"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/certtest"
	"redlock-proxy/internal/redistest"
)

// effectTests holds a test for each setting that can change without a restart. The test checks that
// the proxy uses the new value after a reload. settingTestedBy lists the remaining settings.
var effectTests = map[string]func(*testing.T, *reloadRig){
	"max-ttl": func(t *testing.T, r *reloadRig) {
		r.set("max-ttl", "1m")
		kit.WantPrefix(t, r.operator, "LOCK ttl t PX 60001", "ERR invalid expire time in 'lock' command: the TTL exceeds max-ttl (60000 ms)")
		kit.WantPrefix(t, r.operator, "SET lock:ttl t PX 60001",
			"ERR invalid expire time in 'set' command: the TTL exceeds max-ttl (60000 ms)")
		r.set("max-ttl", "48h")
		kit.WantPrefix(t, r.operator, "LOCK ttl t EX 172800", "1")
		kit.WantPrefix(t, r.operator, "SET lock:ttl t EX 172800", "OK")
	},
	"locks-without-ttl": func(t *testing.T, r *reloadRig) {
		kit.WantPrefix(t, r.operator, "SET lock:endless t", "OK")
		r.set("locks-without-ttl", "refuse")
		kit.WantPrefix(t, r.operator, "SET lock:endless t",
			"ERR lock key 'lock:endless' would have no TTL: the setting locks-without-ttl refuses this; set a TTL")
	},
	"max-clients": func(t *testing.T, r *reloadRig) {
		client := kit.Connect(t, r.proxy)
		kit.WantPrefix(t, client, "LOCK here t PX 60000", "5")
		r.set("max-clients", "1")
		kit.WantPrefix(t, kit.Connect(t, r.proxy), "PING", "ERR max number of clients reached")
		kit.WantPrefix(t, client, "UNLOCK here t", "1")
		kit.WantPrefix(t, client, "GET none", "nil")
		if info := kit.ReplyText(kit.Do(t, client, "PROXY", "INFO")); !strings.Contains(info, "proxy_maxclients:1\r\n") {
			t.Error(info)
		}
		r.set("max-clients", "77")
		kit.Eventually(t, func() error { return kit.Connect(t, r.proxy).Send([]byte("PING\r\n")) })
		kit.WantPrefix(t, kit.Connect(t, r.proxy), "GET none", "nil")
	},
	"max-input-memory": func(t *testing.T, r *reloadRig) {
		const prefix = "*4\r\n$4\r\nLOCK\r\n$950000\r\n"
		sendPartial := func(bytes int) *redistest.Client {
			client := kit.Connect(t, r.proxy)
			kit.Must(t, client.Send([]byte((prefix + strings.Repeat("x", 900_000))[:bytes])))
			return client
		}
		r.set("max-input-memory", "4mb")
		for range 3 {
			sendPartial(len(prefix) + 900_000)
		}
		sendPartial(64 << 10)
		kit.Eventually(t, func() error {
			if inputBytes := metricsOf(t, adminAddr(t, r.proxy))["redlock_client_held_input_bytes"]; inputBytes < 3<<20+128<<10 {
				return fmt.Errorf("%v bytes are held", inputBytes)
			}
			return nil
		})
		if reply, err := sendPartial(512 << 10).Receive(); err != nil || !strings.Contains(kit.ReplyText(reply),
			"limited to 4194304 bytes for all clients; raise max-input-memory") {
			t.Errorf("too much: %v, %v", reply, err)
		}
		r.set("max-input-memory", "256mb")
		client := sendPartial(len(prefix) + 900_000)
		kit.Must(t, client.Send([]byte(strings.Repeat("x", 50_000)+"\r\n$1\r\nt\r\n$1\r\nt\r\n")))
		if reply, err := client.Receive(); err != nil || !strings.HasPrefix(kit.ReplyText(reply), "ERR wrong number") {
			t.Errorf("not too much: %v, %v", reply, err)
		}
	},
	"max-unread-memory": func(t *testing.T, r *reloadRig) {
		kit.WantPrefix(t, r.operator, "SET lock:unread "+strings.Repeat("x", 900_000)+" PX 60000", "OK")
		r.set("max-unread-memory", "4mb")
		var slowClients []*redistest.Client
		cutCount := func() float64 { return metricsOf(t, adminAddr(t, r.proxy))["redlock_client_unread_cut_total"] }
		// Each client leaves unread the part of a reply that does not fit into its socket buffer.
		for range 20 {
			slowClients = append(slowClients, kit.Connect(t, r.proxy))
			kit.Must(t, slowClients[len(slowClients)-1].ShrinkReceiveBuffer())
			kit.Must(t, slowClients[len(slowClients)-1].Send([]byte(strings.Repeat("GET lock:unread\r\n", 24))))
		}
		kit.Await(t, "a client to be cut off", func() bool { return cutCount() > 0 })
		r.awaitLog("client disconnected: it does not read its replies (max-unread-memory)")
		kit.WantPrefix(t, r.operator, "GET lock:unread", "x")
		r.set("max-unread-memory", "256mb")
		before := cutCount()
		kit.Must(t, slowClients[19].Send([]byte(strings.Repeat("GET lock:unread\r\n", 2))))
		kit.WantPrefix(t, r.operator, "GET lock:unread", "x")
		if after := cutCount(); after != before {
			t.Errorf("%v clients were cut off", after-before)
		}
		for _, client := range slowClients {
			_ = client.Close()
		}
		kit.Do(t, r.operator, "DEL", "lock:unread")
	},
	"audit-log": func(t *testing.T, r *reloadRig) {
		kit.WantPrefix(t, r.operator, "LOCK unseen t PX 60000", "5")
		r.set("audit-log", "true")
		kit.WantPrefix(t, r.operator, "LOCK seen t PX 60000", "5")
		r.awaitLog("msg=audit action=granted db=0 key=seen")
		r.set("audit-log", "false")
		kit.WantPrefix(t, r.operator, "UNLOCK seen t", "1")
		if log := r.proxy.Log(); strings.Contains(log, "key=unseen") || strings.Contains(log, "action=released") {
			t.Error("it is logged while audit-log is off")
		}
	},
	"log-level": func(t *testing.T, r *reloadRig) {
		r.set("log-level", "error")
		r.settings["max-ttl"] = "5h"
		r.write()
		r.reload(r.operator)
		if strings.Contains(r.proxy.Log(), `-> \"5h\"`) {
			t.Error("a line of a lower level is logged")
		}
		r.set("log-level", "info")
		r.awaitLog(`log-level: \"error\" -> \"info\"`)
	},
	"log-format": func(t *testing.T, r *reloadRig) {
		r.set("log-format", "json")
		r.awaitLog(`"level":"INFO","msg":"configuration reloaded"`)
		// A component that has had its logger since the start logs the kill.
		kit.Must(t, r.masters[4].Kill())
		_, err := r.proxy.WaitLog(`"msg":"master down"`, kit.WaitLimit)
		kit.Must(t, err)
		kit.Must(t, r.masters[4].Restart())
		r.set("log-format", "text")
	},
	"admin-pprof": func(t *testing.T, r *reloadRig) {
		addr := adminAddr(t, r.proxy)
		for _, want := range []struct {
			value string
			code  int
		}{{"true", 200}, {"false", 404}} {
			r.set("admin-pprof", want.value)
			if code, _, err := getAdminPage(addr, "/debug/pprof/"); code != want.code || err != nil {
				t.Errorf("admin-pprof %s: %d, %v", want.value, code, err)
			}
		}
	},
	"upstream-timeout": func(t *testing.T, r *reloadRig) {
		r.set("upstream-timeout", "200ms")
		// The test uses a second proxy, so that the upstream of the first one keeps working.
		link := kit.StartLink(t, r.upstream)
		slowRig := startReloadRig(t, map[string]string{"upstream-timeout": "30m", "upstream": "redis://:" +
			upstreamPassword(r.settings["upstream"]) + "@" + link.Addr()})
		slowRig.set("upstream-timeout", "200ms")
		kit.Must(t, link.Cut())
		kit.WantPrefix(t, kit.Connect(t, slowRig.proxy), "GET a", "ERR upstream "+link.Addr()+": no answer in time")
		kit.Must(t, link.Heal())
		r.set("upstream-timeout", "10s") // for the following tests
	},
	"client-password-file": func(t *testing.T, r *reloadRig) {
		file := filepath.Join(t.TempDir(), "password")
		kit.Must(t, os.WriteFile(file, []byte("sesame\n"), 0o600))
		oldClient := kit.Connect(t, r.proxy)
		kit.WantPrefix(t, oldClient, "SET a 1", "OK")
		r.set("client-password-file", file, "share-upstream-login", "false")
		kit.WantPrefix(t, oldClient, "GET a", "1") // still needs no login
		newClient, lateClient := kit.Connect(t, r.proxy), kit.Connect(t, r.proxy)
		kit.WantPrefix(t, newClient, "GET a", "NOAUTH")
		kit.WantPrefix(t, lateClient, "LOCK k t PX 60000", "NOAUTH")
		kit.WantPrefix(t, lateClient, "PROXY RELOAD", "NOAUTH")
		kit.WantPrefix(t, newClient, "AUTH sesame", "OK")
		kit.WantPrefix(t, newClient, "GET a", "1")
		kit.Must(t, os.WriteFile(file, []byte("open\n"), 0o600)) // the same file, new password
		if changed, _ := r.reload(r.operator); fmt.Sprint(changed) != "[client-password-file: content changed]" {
			t.Errorf("changed %q", changed)
		}
		kit.WantPrefix(t, lateClient, "AUTH sesame", "WRONGPASS")
		kit.WantPrefix(t, lateClient, "AUTH open", "OK")
		kit.WantPrefix(t, lateClient, "GET a", "1")
		t.Run("RESET", func(t *testing.T) {
			redistest.RequireFeature(t, "RESET", "6.2")
			kit.WantPrefix(t, newClient, "RESET", "RESET")
			kit.WantPrefix(t, newClient, "AUTH sesame", "WRONGPASS")
		})
	},
	// This test needs the settings that the test of client-password-file leaves.
	"share-upstream-login": func(t *testing.T, r *reloadRig) {
		oldClient := kit.Connect(t, r.proxy)
		kit.WantPrefix(t, oldClient, "GET a", "NOAUTH")
		r.set("client-password-file", `""`, "share-upstream-login", "true")
		kit.WantPrefix(t, kit.Connect(t, r.proxy), "GET a", "1")
		// A client that had to log in stays unauthenticated when no password is required any more.
		kit.WantPrefix(t, oldClient, "GET a", "NOAUTH")
		kit.WantPrefix(t, oldClient, "AUTH open", "OK")
	},
	"upstream": func(t *testing.T, r *reloadRig) {
		oldClient := kit.Connect(t, r.proxy)
		kit.WantPrefix(t, oldClient, "SET a 1", "OK")
		kit.Must(t, r.doAtUpstream("CONFIG", "SET", "requirepass", "two"))
		kit.WantPrefix(t, kit.Connect(t, r.proxy), "GET a", "ERR upstream "+r.upstream.Addr()+": AUTH: WRONGPASS")
		r.set("upstream", "redis://:two@"+r.upstream.Addr())
		kit.Eventually(t, func() error { return checkReply(r.proxy.Addr(), "1", "GET", "a") })
		kit.WantPrefix(t, oldClient, "GET a", "1")
		// The proxy's own commands work, too.
		kit.Eventually(t, func() error { return checkReply(r.proxy.Addr(), "e0e1f9", "SCRIPT", "LOAD", "return 1") })
	},
	"master": func(t *testing.T, r *reloadRig) { r.changePasswords(t) },
	"tls-cert": func(t *testing.T, r *reloadRig) {
		ca := certtest.NewCA(t)
		pair, otherCA := ca.Issue(t), certtest.NewCA(t)
		plainClient := kit.Connect(t, r.proxy)
		kit.WantPrefix(t, plainClient, "LOCK tls t PX 60000", "5")
		r.set("tls-cert", pair.Cert, "tls-key", pair.Key)
		handshake := func(certificates ...tls.Certificate) error {
			conn, err := tls.Dial("tcp", r.proxy.Addr(), &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost",
				Certificates: certificates})
			if err != nil {
				return err
			}
			defer conn.Close()
			if _, err = conn.Write([]byte("UNLOCK tls u\r\n")); err == nil {
				_, err = conn.Read(make([]byte, 1))
			}
			return err
		}
		kit.Must(t, handshake())
		if got := kit.ReplyText(kit.Do(t, kit.Connect(t, r.proxy), "PING")); got != "ERR this port requires TLS" {
			t.Errorf("a new client without TLS: %s", got)
		}
		r.set("tls-client-ca", ca.File)
		if handshake() == nil || handshake(otherCA.Issue(t).TLS) == nil {
			t.Error("a client without a certificate, or with a stranger's, is let in")
		}
		kit.Must(t, handshake(ca.Issue(t).TLS))
		kit.WantPrefix(t, plainClient, "UNLOCK tls t", "1")
		r.set("tls-cert", `""`, "tls-key", `""`, "tls-client-ca", `""`)
		kit.WantPrefix(t, kit.Connect(t, r.proxy), "LOCK tls t PX 60000", "5")
	},
	"drain-timeout": func(t *testing.T, r *reloadRig) { // must be the last test: it ends the proxy
		r.set("drain-timeout", "100ms", "drain-delay", "1s")
		kit.ConnectWithoutReading(t, r.proxy)
		kit.Must(t, r.proxy.Signal(syscall.SIGTERM))
		_, err := r.proxy.WaitLog("drain-delay=1s", kit.WaitLimit)
		kit.Must(t, err)
		wantExit(t, r.proxy, 0, kit.WaitLimit)
	},
}

// settingTestedBy names, for each setting, the setting or the test function that also tests it.
var settingTestedBy = map[string]string{
	"tls-key": "tls-cert", "tls-client-ca": "tls-cert", "drain-delay": "drain-timeout",
	"ca": "TestReloadServerCertificates", "client-cert": "TestReloadServerCertificates", "client-key": "TestReloadServerCertificates",
	"protected-mode": "TestReloadProtectedMode", "max-message-memory": "TestReloadMessageMemory", "lock-class": "TestMetricsByClass",
}

// checkReply returns an error unless a new client gets a reply that begins with want.
func checkReply(addr, want string, command ...string) error {
	client, err := redistest.Dial(addr, kit.WaitLimit)
	if err != nil {
		return err
	}
	defer client.Close()
	reply, err := client.Do(command...)
	if got := kit.ReplyText(reply); err == nil && !strings.HasPrefix("["+got, want) && !strings.HasPrefix(got, want) {
		err = fmt.Errorf("%v: got %s, want %s", command, got, want)
	}
	return err
}

// changePasswords sets a password at every master, then a different password, and then removes one
// master.
func (r *reloadRig) changePasswords(t *testing.T) {
	masters := kit.StartMasters(t)
	urls := func(password string) (list []string) {
		for _, m := range masters {
			list = append(list, "redis://:"+password+"@"+m.Addr())
		}
		return list
	}
	for _, m := range masters {
		kit.Must(t, kit.SendToMaster(m, "CONFIG", "SET", "requirepass", "one"))
	}
	rig := startReloadRig(t, map[string]string{"master": yamlList(urls("one"))})
	kit.WantPrefix(t, rig.operator, "LOCK before t PX 60000", "5")
	for _, m := range masters {
		conn := kit.Dial(t, m.Addr())
		kit.WantPrefix(t, conn, "AUTH one", "OK")
		kit.WantPrefix(t, conn, "CONFIG SET requirepass two", "OK")
		// The kill makes connected clients reconnect.
		kit.Do(t, conn, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	}
	rig.set("master", yamlList(urls("two")))
	kit.Eventually(t, func() error { return checkAllVote(rig.proxy, len(masters)) })
	kit.WantPrefix(t, rig.operator, "LOCK before u PX 60000", "nil")
	rig.set("master", yamlList(urls("two")[1:]))
	kit.Eventually(t, func() error { return checkAllVote(rig.proxy, len(masters)-1) })
	kit.WantPrefix(t, rig.operator, "LOCK before u PX 60000", "nil")
	kit.WantPrefix(t, rig.operator, "UNLOCK before t", "1")
}

// TestReloadOfEachSetting checks that, after a reload, each setting takes effect or, if it needs a
// restart, is reported and changes nothing.
func TestReloadOfEachSetting(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startReloadRig(t, map[string]string{"admin": "127.0.0.1:0", "max-ttl": "1h", "audit-log": "false"})
	otherValues := map[string]string{
		"listen": "127.0.0.1:1", "cluster-ports": "6401-6402", "announce": "proxy.example", "admin": "127.0.0.1:2", "master-timeout": "1s", "guard": "false", "fresh-start": "false",
		"key-prefix": `"p:"`, "lock-keys": `["lock:*", "more:*"]`, "lock-tags": `["lock:*"]`, "admin-locks": "true",
		"move-from-upstream": "true",
		"proxy-protocol":     `["10.0.0.1"]`, "admin-hosts": `["proxies.example"]`,
	}
	run := func(name string, effectTest func(*testing.T, *reloadRig)) {
		t.Run(name, func(t *testing.T) {
			defer func(outer *testing.T) { r.t = outer }(r.t)
			r.t = t
			effectTest(t, r)
		})
	}
	const lastSetting = "drain-timeout"
	for _, s := range conf.Settings() {
		switch effectTest := effectTests[s.Name]; {
		case s.Name == "acl-file": // see TestReloadOfUsers
		case s.Name == "cluster-mode": // only for a proxy without an upstream
		case s.Reload == conf.AtRestart:
			run(s.Name, func(t *testing.T, r *reloadRig) { r.wantRestartNeeded(t, s.Name, otherValues[s.Name]) })
		case effectTest == nil && settingTestedBy[s.Name] == "":
			t.Errorf("%s is not shown to act after a reload", s.Name)
		case effectTest != nil && s.Name != lastSetting:
			run(s.Name, effectTest)
		}
	}
	run(lastSetting, effectTests[lastSetting])
}

// TestReloadOfUsers checks that the proxy's own users are reloaded together with the settings, or
// not at all. A different file needs a restart.
func TestReloadOfUsers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users.acl")
	write := func(users string) {
		kit.Must(t, os.WriteFile(file, []byte("user default on nopass ~* &* +@all\n"+users), 0o600))
	}
	write("")
	r := startReloadRig(t, map[string]string{"acl-file": file, "share-upstream-login": "false"})
	r.set()
	write("user app on >secret ~lock:* +@all -@dangerous\n")
	if changed, pending := r.reload(r.operator); !slices.Equal(settingsIn(changed), []string{"acl-file"}) ||
		len(pending) > 0 {
		t.Errorf("changed %q, pending %q", changed, pending)
	}
	app := kit.Connect(t, r.proxy)
	kit.WantPrefix(t, app, "AUTH app secret", "OK")
	kit.WantPrefix(t, app, "GET other", "NOPERM ")
	write("user app on nonsense\n")
	r.settings["drain-timeout"] = "3s"
	r.write()
	kit.WantPrefix(t, r.operator, "PROXY RELOAD", "ERR the configuration was not reloaded: acl-file: ")
	kit.WantPrefix(t, app, "AUTH app secret", "OK")
	kit.WantPrefix(t, app, "GET other", "NOPERM ")
	write("user app on >secret ~lock:* +@all -@dangerous\n")
	delete(r.settings, "drain-timeout")
	r.set()
	r.wantRestartNeeded(t, "acl-file", file+".other")
}

// wantRestartNeeded fails the test unless a reload reports that a changed setting needs a restart,
// until the setting has its former value again.
func (r *reloadRig) wantRestartNeeded(t *testing.T, name, value string) {
	before, wasSet := r.settings[name]
	r.settings[name] = value
	r.write()
	if changed, pending := r.reload(r.operator); len(changed) > 0 || !slices.Equal(settingsIn(pending), []string{name}) {
		t.Errorf("changed %q, pending %q", changed, pending)
	}
	kit.WantPrefix(t, r.operator, "LOCK same t PX 60000", "5")
	// The lock has the same name as before.
	kit.Eventually(t, func() error { return kit.CheckMajority(r.masters, "same", "t") })
	kit.WantPrefix(t, r.operator, "UNLOCK same t", "1")
	kit.WantPrefix(t, r.operator, "SET more:a 1", "OK")
	for _, m := range r.masters { // more:a is not a lock key
		kit.Must(t, kit.CheckAbsent(m, "more:a"))
	}
	if r.settings[name] = before; !wasSet {
		delete(r.settings, name)
	}
	r.write()
	if changed, pending := r.reload(r.operator); len(changed)+len(pending) > 0 {
		t.Errorf("put back: changed %q, pending %q", changed, pending)
	}
}

// TestReloadServerCertificates checks that a reload can change the certificate authority and the
// certificate for the masters.
func TestReloadServerCertificates(t *testing.T) {
	t.Parallel()
	ca, wrong := certtest.NewCA(t), certtest.NewCA(t)
	clientPair := ca.Issue(t)
	var urls []string
	for range 3 {
		_, url := startTLSMaster(t, ca)
		urls = append(urls, url)
	}
	r := startReloadRig(t, map[string]string{"master": yamlList(urls), "ca": wrong.File})
	checkVotes := func(n int) error {
		return checkReply(r.proxy.Addr(), fmt.Sprintf("[ready:%s\r\n", map[bool]string{true: "yes",
			false: "no"}[n == 3]), "PROXY", "HEALTH")
	}
	kit.Must(t, checkVotes(0))
	r.set("ca", ca.File)
	// Now the proxy trusts the masters, and the masters require a certificate.
	kit.Eventually(t, func() error {
		info := kit.ReplyText(kit.Do(t, r.operator, "PROXY", "INFO"))
		if strings.Contains(info, "unknown authority") || strings.Contains(info, "state=voting") {
			return fmt.Errorf("with the right authority alone: %s", info)
		}
		return nil
	})
	r.set("client-cert", clientPair.Cert, "client-key", clientPair.Key)
	kit.Eventually(t, func() error { return checkVotes(3) })
	kit.Eventually(t, func() error { return checkReply(r.proxy.Addr(), "5", "LOCK", "k", "t", "PX", "60000") })
}

// TestReloadProtectedMode checks that, after a reload, protected-mode applies to new connections.
func TestReloadProtectedMode(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	otherAddr := kit.NonLoopbackAddress(t)
	r := startReloadRig(t, map[string]string{"listen": "0.0.0.0:0"})
	_, port, err := net.SplitHostPort(r.proxy.Addr())
	kit.Must(t, err)
	addr := net.JoinHostPort(otherAddr, port)
	kit.Must(t, checkReply(addr, "DENIED", "LOCK", "k", "t", "PX", "60000"))
	r.set("protected-mode", "false")
	remote := kit.Dial(t, addr)
	kit.WantPrefix(t, remote, "LOCK k t PX 60000", "5")
	r.set("protected-mode", "true")
	kit.Must(t, checkReply(addr, "DENIED", "LOCK", "l", "t", "PX", "60000"))
	// The client that connected before the reload stays accepted.
	kit.WantPrefix(t, remote, "UNLOCK k t", "1")
}

// TestReloadMessageMemory checks that a reload changes the memory for messages that wait for
// subscribers. If the limit is exceeded, only the slowest subscriber is disconnected.
func TestReloadMessageMemory(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startReloadRig(t, map[string]string{"upstream": `""`, "share-upstream-login": "false", "admin": "127.0.0.1:0"})
	r.set("max-message-memory", "4mb")
	subscribe := func(channels ...string) *redistest.Client {
		client := kit.Connect(t, r.proxy)
		for _, channel := range channels {
			kit.Do(t, client, "SUBSCRIBE", channel)
		}
		return client
	}
	slowClient, fastClient, payload := subscribe("news"), subscribe("news"), strings.Repeat("p", 200_000)
	metric := func(name string) float64 { return metricsOf(t, adminAddr(t, r.proxy))[name] }
	for n := 0; metric("redlock_message_backlog_cut_total") == 0; n++ {
		if n == 500 {
			t.Fatal("no client is disconnected")
		}
		kit.Do(t, r.operator, "PUBLISH", "news", payload)
		if _, err := fastClient.Receive(); err != nil {
			t.Fatalf("a client that reads: %v", err)
		}
	}
	for err := error(nil); err == nil; _, err = slowClient.Receive() {
	}
	kit.Eventually(t, func() error {
		return checkMetrics(metricsOf(t, adminAddr(t, r.proxy)), map[string]float64{"redlock_message_backlog_bytes": 0,
			"redlock_message_backlog_cut_total": 1})
	})
	kit.Want(t, r.operator, int64(1), "PUBLISH", "news", "x")
}
