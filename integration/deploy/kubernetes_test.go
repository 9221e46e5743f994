//go:build integration && helm

package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/goccy/go-yaml"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/process"
	"redlock-proxy/internal/redistest"
)

// manifest holds the tested fields of a Kubernetes object.
type manifest struct {
	Kind       string
	Metadata   struct{ Name string }
	Data       map[string]string
	StringData map[string]string `yaml:"stringData"`
	Spec       struct {
		Template struct {
			Spec struct{ Containers []container }
		}
	}
}

type container struct {
	Args           []string
	Env            []struct{ Name, Value string }
	Ports          []port
	StartupProbe   probe `yaml:"startupProbe"`
	LivenessProbe  probe `yaml:"livenessProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
}

type port struct {
	Name   string
	Number int `yaml:"containerPort"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

// manifests returns the objects in a text by their kind and name.
func manifests(t *testing.T, text []byte) map[string]manifest {
	t.Helper()
	all := map[string]manifest{}
	for documents := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m manifest
		err := documents.Decode(&m)
		if errors.Is(err, io.EOF) {
			return all
		}
		kit.Must(t, err)
		all[m.Kind+"/"+m.Metadata.Name] = m
	}
}

// renderChart returns the chart's objects for the given values, with the helm version that
// deploy/helm/verify pins.
func renderChart(t *testing.T, values string) map[string]manifest {
	t.Helper()
	helm := exec.Command("go", "tool", "helm", "template", "redlock-proxy", "../redlock-proxy", "--set", values)
	helm.Dir = repositoryRoot + "deploy/helm/verify"
	output, err := helm.Output()
	kit.Must(t, err)
	return manifests(t, output)
}

// startMaster starts a redis-server with the settings of the chart, in its own folder.
func startMaster(t *testing.T, settings, auth string) *redistest.Server {
	t.Helper()
	for old, own := range map[string]string{"dir /data\n": "", "include /etc/redis-secret/auth.conf": "include " +
		writeFile(t, "auth.conf", auth)} {
		if !strings.Contains(settings, old) {
			t.Fatalf("there is no %q in\n%s", old, settings)
		}
		settings = strings.Replace(settings, old, own, 1)
	}
	return kit.StartRedis(t, "--include", writeFile(t, "redis.conf", settings))
}

// wantMaster fails the test unless a server is a valid master that requires a password.
func wantMaster(t *testing.T, master *redistest.Server, password string) {
	t.Helper()
	client := kit.Dial(t, master.Addr())
	kit.Want(t, client, redistest.RespError("NOAUTH Authentication required."), "GET", "k")
	kit.Want(t, client, "OK", "AUTH", password)
	for name, want := range map[string]string{"appendonly": "yes", "appendfsync": "always",
		"maxmemory-policy": "noeviction", "save": "", "replicaof": ""} {
		if got := fmt.Sprint(kit.Do(t, client, "CONFIG", "GET", name)); got != fmt.Sprintf("[%s %s]", name, want) {
			t.Errorf("a master has %s, want %q", got, want)
		}
	}
}

// TestKubernetes starts the processes of the chart: five masters, init and a proxy, with the
// chart's secrets. It replaces names, folders and ports by those of this machine.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	upstream := kit.StartRedis(t)
	made := renderChart(t, "protectedMode=false,settings.upstream="+upstream.URL())
	settings := made["Secret/redlock-proxy"].StringData["redlock-proxy.yaml"]
	password := regexp.MustCompile(`redis://:(\w+)@`).FindStringSubmatch(settings)
	if password == nil {
		t.Fatal("the settings have no password of the masters")
	}
	for n := range 5 {
		name := fmt.Sprintf("redlock-proxy-master-%d", n+1)
		if args := made["StatefulSet/"+name].Spec.Template.Spec.Containers[0].Args; !slices.Equal(args,
			[]string{"redis-server", "/etc/redis/redis.conf"}) {
			t.Errorf("%s starts %q", name, args)
		}
		master := startMaster(t, made["ConfigMap/redlock-proxy-masters"].Data["redis.conf"],
			made["Secret/redlock-proxy-masters"].StringData["auth.conf"])
		wantMaster(t, master, password[1])
		settings = strings.Replace(settings, name+"-0.redlock-proxy-masters:6379", master.Addr(), 1)
	}
	path := writeFile(t, "redlock-proxy.yaml", settings)
	runInit(t, made["Job/redlock-proxy-init"].Spec.Template.Spec.Containers[0], path)
	p := startContainer(t, made["Deployment/redlock-proxy"].Spec.Template.Spec.Containers[0], path)
	p.wantClientServed(t, "127.0.0.1", "here")
	p.wantClientServed(t, kit.NonLoopbackAddress(t), "there")
	p.wantProbes(t)
	p.wantCleanStop(t)
}

// TestKubernetesProtectedMode checks that the chart's values decide whether the proxy accepts
// clients from other machines.
func TestKubernetesProtectedMode(t *testing.T) {
	t.Parallel()
	open, closed := kit.StartRedis(t), kit.StartRedis(t, "--requirepass", "secret")
	users := writeFile(t, "users.acl", "user default off\nuser app on >wonder ~* &* +@all\n")
	masters := redistest.URLs(kit.StartMasters(t))
	elsewhere := kit.NonLoopbackAddress(t)
	for values, test := range map[string]struct {
		refusal string // the error for clients that have not logged in
		login   []string
	}{
		"protectedMode=false":                                  {},
		"users.existingSecret=users":                           {"NOAUTH", []string{"AUTH", "app", "wonder"}},
		"protectedMode=true,settings.upstream=" + closed.URL(): {"NOAUTH", []string{"AUTH", "secret"}},
		"protectedMode=true,settings.upstream=" + open.URL():   {"DENIED Redis is running in protected mode", nil},
	} {
		made := renderChart(t, values)
		_, rest, _ := strings.Cut(made["Secret/redlock-proxy"].StringData["redlock-proxy.yaml"], "\nupstream:")
		settings := "fresh-start: true\nmaster: [" + strings.Join(masters, ", ") + "]\nupstream:" + rest
		c := made["Deployment/redlock-proxy"].Spec.Template.Spec.Containers[0]
		for i, v := range c.Env {
			c.Env[i].Value = strings.Replace(v.Value, "/etc/redlock-proxy-users/users.acl", users, 1)
		}
		p := startContainer(t, c, writeFile(t, "redlock-proxy.yaml", settings))
		client := kit.Dial(t, elsewhere+":"+p.ports["redis"])
		if test.refusal != "" {
			kit.WantPrefix(t, client, "LOCK refused there PX 60000", test.refusal)
		}
		if test.login != nil {
			kit.Want(t, client, "OK", test.login...)
		}
		if test.login != nil || test.refusal == "" {
			kit.WantGrant(t, client, "LOCK", "k"+p.ports["redis"], "there", "PX", "60000")
		}
	}
}

// environ returns the environment of a container, with this machine's ports and settings file.
func (c container) environ(settings string, ports map[string]string) []string {
	env := environ()
	for _, v := range c.Env {
		value := strings.Replace(v.Value, "/etc/redlock-proxy/redlock-proxy.yaml", settings, 1)
		for _, p := range c.Ports {
			value = strings.Replace(value, fmt.Sprintf("0.0.0.0:%d", p.Number), "0.0.0.0:"+ports[p.Name], 1)
		}
		env = append(env, v.Name+"="+value)
	}
	return env
}

// runInit runs the chart's init job, and fails the test unless it succeeds.
func runInit(t *testing.T, c container, settings string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), buildProxy(t), c.Args...)
	cmd.Env = c.environ(settings, nil)
	output, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "\n5 of 5 masters vote\nnext: ") {
		t.Fatalf("init: %v\n%s", err, output)
	}
}

// runningContainer is a container that runs as a process.
type runningContainer struct {
	container
	*process.Process
	ports map[string]string
}

// startContainer starts the proxy of a container, and waits until locks are available. The proxy
// listens on every address of this machine.
func startContainer(t *testing.T, c container, settings string) runningContainer {
	t.Helper()
	ports := map[string]string{"redis": kit.FreePort(t), "admin": kit.FreePort(t)}
	proxy, err := process.Start(buildProxy(t), c.Args, c.environ(settings, ports))
	kit.Must(t, err)
	t.Cleanup(func() { kit.NoError(t, proxy.Kill()) })
	_, err = proxy.WaitLine(func(line string) bool { return strings.Contains(line, `"msg":"ready"`) }, kit.WaitLimit)
	kit.Must(t, err)
	return runningContainer{c, proxy, ports}
}

// wantClientServed fails the test unless a client at an address of the proxy can use locks and the
// upstream.
func (r runningContainer) wantClientServed(t *testing.T, host, name string) {
	t.Helper()
	client := kit.Dial(t, host+":"+r.ports["redis"])
	kit.WantGrant(t, client, "LOCK", name, "t", "PX", "30000")
	kit.Want(t, client, "OK", "SET", "lock:"+name, "t", "NX", "PX", "30000")
	kit.Want(t, client, "OK", "SET", "greeting", "hello")
}

// wantProbes fails the test unless the probes of Kubernetes succeed.
func (r runningContainer) wantProbes(t *testing.T) {
	t.Helper()
	for _, p := range []probe{r.StartupProbe, r.LivenessProbe, r.ReadinessProbe} {
		wantProbe(t, "http://127.0.0.1:"+r.ports[p.HTTPGet.Port]+p.HTTPGet.Path)
	}
}

// wantCleanStop stops the proxy as Kubernetes does, and fails the test unless its exit code is 0.
func (r runningContainer) wantCleanStop(t *testing.T) {
	t.Helper()
	kit.Must(t, r.Signal(syscall.SIGTERM))
	if code, err := r.Wait(kit.WaitLimit); code != 0 || err != nil {
		t.Errorf("it ends with %d, %v:\n%s", code, err, r.Log())
	}
}

func wantProbe(t *testing.T, url string) {
	t.Helper()
	answer, err := http.Get(url)
	kit.Must(t, err)
	kit.Must(t, answer.Body.Close())
	if answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", url, answer.Status)
	}
}
