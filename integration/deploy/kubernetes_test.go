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

	"redlock-proxy/conf"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/process"
	"redlock-proxy/internal/redistest"
)

// manifest is as much of a Kubernetes object as is tried out here.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Secret   map[string]string `yaml:"stringData"`
	Spec     struct {
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

// manifests are the objects of a text by their kind and name.
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

// rendered is what the chart makes with an upstream, by the helm that deploy/helm/verify pins.
func rendered(t *testing.T, upstream string) map[string]manifest {
	t.Helper()
	helm := exec.Command("go", "tool", "helm", "template", "redlock-proxy", "../redlock-proxy", "--set", "settings.upstream="+upstream)
	helm.Dir = root + "deploy/helm/verify"
	output, err := helm.Output()
	kit.Must(t, err)
	return manifests(t, output)
}

// startMaster starts a redis-server with the settings of the chart, in a folder and on a port of its own.
func startMaster(t *testing.T, settings, auth string) *redistest.Server {
	t.Helper()
	for old, own := range map[string]string{"dir /data\n": "", "include /etc/redis-secret/auth.conf": "include " + write(t, "auth.conf", auth)} {
		if !strings.Contains(settings, old) {
			t.Fatalf("there is no %q in\n%s", old, settings)
		}
		settings = strings.Replace(settings, old, own, 1)
	}
	return kit.StartRedis(t, "--include", write(t, "redis.conf", settings))
}

// wantMaster wants a server to be what a master must be, for those who log in.
func wantMaster(t *testing.T, master *redistest.Server, password string) {
	t.Helper()
	client := kit.Dial(t, master.Addr())
	kit.Want(t, client, redistest.RespError("NOAUTH Authentication required."), "GET", "k")
	kit.Want(t, client, "OK", "AUTH", password)
	for name, want := range map[string]string{"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction", "save": "", "replicaof": ""} {
		if got := fmt.Sprint(kit.Do(t, client, "CONFIG", "GET", name)); got != fmt.Sprintf("[%s %s]", name, want) {
			t.Errorf("a master has %s, want %q", got, want)
		}
	}
}

// TestKubernetes starts what the chart starts, as it does: five masters, init and a proxy, with the secrets that it makes.
// Instead of their names, volumes and ports they get those of this machine.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	upstream := kit.StartRedis(t)
	made := rendered(t, upstream.URL())
	settings := made["Secret/redlock-proxy"].Secret["redlock-proxy.yaml"]
	password := regexp.MustCompile(`redis://:(\w+)@`).FindStringSubmatch(settings)
	if password == nil {
		t.Fatal("the settings have no password of the masters")
	}
	for n := range 5 {
		name := fmt.Sprintf("redlock-proxy-master-%d", n+1)
		if args := made["StatefulSet/"+name].Spec.Template.Spec.Containers[0].Args; !slices.Equal(args, []string{"redis-server", "/etc/redis/redis.conf"}) {
			t.Errorf("%s starts %q", name, args)
		}
		master := startMaster(t, made["ConfigMap/redlock-proxy-masters"].Data["redis.conf"], made["Secret/redlock-proxy-masters"].Secret["auth.conf"])
		wantMaster(t, master, password[1])
		settings = strings.Replace(settings, name+"-0.redlock-proxy-masters:6379", master.Addr(), 1)
	}
	path := write(t, "redlock-proxy.yaml", settings)
	tryInit(t, made["Job/redlock-proxy-init"].Spec.Template.Spec.Containers[0], path)
	tryProxy(t, made["Deployment/redlock-proxy"].Spec.Template.Spec.Containers[0], path)
}

// environ is the environment of a container, with the ports and the file of settings of this machine.
func (c container) environ(settings string, ports map[string]string) []string {
	env := environ()
	for _, v := range c.Env {
		value := strings.Replace(v.Value, "/etc/redlock-proxy/redlock-proxy.yaml", settings, 1)
		for _, p := range c.Ports {
			value = strings.Replace(value, fmt.Sprintf("0.0.0.0:%d", p.Number), "127.0.0.1:"+ports[p.Name], 1)
		}
		if known(v.Name) {
			env = append(env, v.Name+"="+value)
		}
	}
	return env
}

// tryInit runs the job.
func tryInit(t *testing.T, c container, settings string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), buildProxy(t), c.Args...)
	cmd.Env = c.environ(settings, nil)
	output, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(output), "\n5 of 5 masters vote\n") {
		t.Fatalf("init: %v\n%s", err, output)
	}
}

// tryProxy starts a proxy, and is a client of it, and the probes.
func tryProxy(t *testing.T, c container, settings string) {
	t.Helper()
	ports := map[string]string{"redis": kit.FreePort(t), "admin": kit.FreePort(t)}
	proxy, err := process.Start(buildProxy(t), c.Args, c.environ(settings, ports))
	kit.Must(t, err)
	t.Cleanup(func() { kit.NoError(t, proxy.Kill()) })
	_, err = proxy.WaitLine(func(line string) bool { return strings.Contains(line, `"msg":"ready"`) }, kit.Patience)
	kit.Must(t, err)
	client := kit.Dial(t, "127.0.0.1:"+ports["redis"])
	kit.WantGrant(t, client, "LOCK", "k", "t", "PX", "30000")
	kit.Want(t, client, "OK", "SET", "lock:k", "t", "NX", "PX", "30000")
	kit.Want(t, client, "OK", "SET", "greeting", "hello")
	if known("REDLOCK_ADMIN") {
		for _, p := range []probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
			wantProbe(t, "http://127.0.0.1:"+ports[p.HTTPGet.Port]+p.HTTPGet.Path)
		}
	}
	kit.Must(t, proxy.Signal(syscall.SIGTERM))
	if code, err := proxy.Wait(kit.Patience); code != 0 || err != nil {
		t.Errorf("it ends with %d, %v:\n%s", code, err, proxy.Log())
	}
}

// known reports whether the proxy takes a variable: all but one for the admin port, where this version has none.
func known(variable string) bool {
	return variable != "REDLOCK_ADMIN" || slices.ContainsFunc(conf.Settings(), func(s conf.Setting) bool { return s.Env() == variable })
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
