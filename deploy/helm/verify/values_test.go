package verify

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// TestProtectedMode checks that the chart sets protected mode, and refuses to render if the values
// do not decide it.
func TestProtectedMode(t *testing.T) {
	const upstream = "settings.upstream=redis://redis"
	for values, want := range map[string]string{
		"protectedMode=false":                                     "false",
		"protectedMode=false," + upstream:                         "false",
		"protectedMode=true," + upstream:                          "true",
		"users.existingSecret=own":                                "true",
		"settings.acl-file=/etc/users.acl":                        "true",
		"settings.tls-client-ca=/etc/ca":                          "true",
		"settings.client-password-file=/p":                        "true",
		"users.existingSecret=own,protectedMode=false":            "false",
		"protectedMode=true,existingSettings=own,masters.count=0": "true",
	} {
		if got := proxyVariables(load(t, "--set", values))["REDLOCK_PROTECTED_MODE"]; got != want {
			t.Errorf("%s: got %q, want %s", values, got, want)
		}
	}
	const undecided = "protectedMode: clients come from other pods, and nothing says that they have to log in"
	for values, want := range map[string]string{
		"init=true":                            undecided,
		upstream:                               undecided,
		"existingSettings=own,masters.count=0": undecided,
		"protectedMode=true":                   "protectedMode: true turns all clients away",
		"protectedMode=off":                    "/protectedMode",
		"settings.protected-mode=false":        "settings.protected-mode: the chart decides it",
	} {
		wantRefused(t, want, "--set", values)
	}
}

// TestClusterPorts checks that the chart passes on the ports for the nodes of a cluster, and lets
// clients reach them.
func TestClusterPorts(t *testing.T) {
	const values = "protectedMode=false,proxies.clusterPorts=6401-6420,networkPolicy.enabled=true"
	if got := proxyVariables(load(t, "--set", values))["REDLOCK_CLUSTER_PORTS"]; got != "6401-6420" {
		t.Errorf("the variable is %q", got)
	}
	if text := string(render(t, "--set", values)); !strings.Contains(text, "{port: 6401, endPort: 6420, protocol: TCP}") {
		t.Error("clients cannot reach the ports")
	}
	wantRefused(t, "clusterPorts", "--set", "protectedMode=false,proxies.clusterPorts=all")
}

// proxyVariables returns the environment variables of the proxies' container.
func proxyVariables(c *cluster) map[string]string {
	all := map[string]string{}
	for _, v := range c.podNamed("redlock-proxy").spec.Containers[0].Env {
		all[v.Name] = v.Value
	}
	return all
}

// podNamed returns the pod with this name, or a pod with an empty container if no pod has the name.
func (c *cluster) podNamed(name string) pod {
	for _, p := range c.pods {
		if p.name == name {
			return p
		}
	}
	return pod{spec: core.PodSpec{Containers: []core.Container{{}}}}
}

// TestUsers checks that REDLOCK_ACL_FILE is in the folder where the secret with the users is
// mounted.
func TestUsers(t *testing.T) {
	c := load(t, "--set", "users.existingSecret=own-users")
	folder, found := strings.CutSuffix(proxyVariables(c)["REDLOCK_ACL_FILE"], "/users.acl")
	at := mountedVolume(c.podNamed("redlock-proxy"), folder)
	if !found || at.Secret == nil || at.Secret.SecretName != "own-users" {
		t.Errorf("REDLOCK_ACL_FILE is %q, and there is %+v", proxyVariables(c)["REDLOCK_ACL_FILE"], at)
	}
}

// mountedVolume returns the volume that a pod mounts at a path.
func mountedVolume(p pod, path string) core.VolumeSource {
	for _, m := range p.spec.Containers[0].VolumeMounts {
		if m.MountPath != path {
			continue
		}
		for _, v := range p.spec.Volumes {
			if v.Name == m.Name {
				return v.VolumeSource
			}
		}
	}
	return core.VolumeSource{}
}

// TestExtras checks that the volumes and annotations of the proxies also apply to the init job;
// masters have annotations of their own. All pods use the same service account.
func TestExtras(t *testing.T) {
	c := load(t, valueSets["everything"]...)
	for _, p := range c.pods {
		isMaster := strings.Contains(p.name, "-master-")
		want := map[bool]string{true: "c", false: "b"}[isMaster]
		if p.annotations["a"] != want {
			t.Errorf("%s has the annotations %v", p.name, p.annotations)
		}
		if v := mountedVolume(p, "/etc/tls"); (v.Secret == nil) != isMaster {
			t.Errorf("%s has at /etc/tls %+v", p.name, v)
		}
		if p.spec.ServiceAccountName != "redlock-proxy" {
			t.Errorf("%s runs as %q", p.name, p.spec.ServiceAccountName)
		}
	}
	for values, want := range map[string]string{"init=true": "default", "serviceAccount.name=given": "given",
		"serviceAccount.create=true,serviceAccount.name=made": "made"} {
		c := load(t, append(requiredValues, "--set", values)...)
		if got := c.podNamed("redlock-proxy").spec.ServiceAccountName; got != want {
			t.Errorf("%s: it runs as %q, want %q", values, got, want)
		}
	}
}

// TestImage checks that the default tag of the image is the version of the program.
func TestImage(t *testing.T) {
	program, err := os.ReadFile("../../../main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(string(program), "\nconst version = \"")
	version, _, _ = strings.Cut(version, "\"")
	for values, want := range map[string]string{
		"init=true":                      "redlock-proxy:" + version,
		"proxies.image.repository=a.b/c": "a.b/c:" + version,
		"proxies.image.tag=1.2.3":        "redlock-proxy:1.2.3",
	} {
		c := load(t, append(requiredValues, "--set", values)...)
		for _, name := range []string{"redlock-proxy", "redlock-proxy-init"} {
			if got := c.podNamed(name).spec.Containers[0].Image; got != want {
				t.Errorf("%s: %s has the image %q, want %s", values, name, got, want)
			}
		}
	}
}

// schema holds a part of values.schema.json.
type schema struct {
	Type                 any
	Properties           map[string]schema
	AdditionalProperties any
}

// TestSchema checks that the schema has exactly the values of values.yaml, and allows no other
// values.
func TestSchema(t *testing.T) {
	text, err := os.ReadFile(chart + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var known schema
	if err := json.Unmarshal(text, &known); err != nil {
		t.Fatal(err)
	}
	delete(known.Properties, "global") // Helm's own, for a chart that is part of another chart
	text, err = os.ReadFile(chart + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	compareWithSchema(t, "", known, values)
}

func compareWithSchema(t *testing.T, path string, known schema, values map[string]any) {
	t.Helper()
	if known.AdditionalProperties != false {
		t.Errorf("the schema allows anything in %s/", path)
	}
	if a, b := slices.Sorted(maps.Keys(known.Properties)), slices.Sorted(maps.Keys(values)); !slices.Equal(a, b) {
		t.Errorf("%s/ has %q in the schema, and %q in values.yaml", path, a, b)
	}
	for name, part := range known.Properties {
		if inner, isMap := values[name].(map[string]any); isMap && part.Properties != nil {
			compareWithSchema(t, path+"/"+name, part, inner)
		}
	}
}
