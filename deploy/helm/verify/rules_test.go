package verify

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestStrict checks that a field that Kubernetes does not know, or a repeated field, is an error.
// Otherwise the other tests could not fail.
func TestStrict(t *testing.T) {
	const good = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: None}\n"
	d := decoder(t)
	if _, err := decode(d, []byte(good)); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{
		strings.Replace(good, "clusterIP", "clusterIp", 1),
		strings.Replace(good, "None", "None, clusterIP: None", 1),
		strings.Replace(good, "Service", "Servise", 1),
		strings.Replace(good, "None", "[]", 1),
	} {
		if _, err := decode(d, []byte(bad)); err == nil {
			t.Errorf("no error for\n%s", bad)
		}
	}
}

// TestSecured checks that no pod runs as root, can gain privileges or can write to its image. A pod
// gets no service account token, no variables of services, and no password in a variable. Its
// containers request CPU time and have a memory limit.
func TestSecured(t *testing.T) { eachValueSet(t, checkSecurity) }

func checkSecurity(t *testing.T, cluster *cluster) {
	for _, p := range cluster.pods {
		s := p.spec.SecurityContext
		if s == nil || !isTrue(s.RunAsNonRoot) || s.RunAsUser == nil || *s.RunAsUser == 0 || s.FSGroup == nil ||
			s.SeccompProfile == nil || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: its security context is %+v", p.name, s)
		}
		if p.spec.AutomountServiceAccountToken == nil || *p.spec.AutomountServiceAccountToken ||
			p.spec.EnableServiceLinks == nil || *p.spec.EnableServiceLinks {
			t.Errorf("%s gets a token, or variables of services", p.name)
		}
		for _, c := range p.spec.Containers {
			s := c.SecurityContext
			if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
				!isTrue(s.ReadOnlyRootFilesystem) ||
				s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) {
				t.Errorf("%s: the security context of %s is %+v", p.name, c.Name, s)
			}
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: %s has no requests, or no limit of memory", p.name, c.Name)
			}
			for _, v := range c.Env {
				if v.ValueFrom != nil || strings.Contains(strings.ToLower(v.Name+v.Value), "password") {
					t.Errorf("%s: %s of %s: secrets come from files", p.name, v.Name, c.Name)
				}
			}
		}
	}
}

func isTrue(flag *bool) bool { return flag != nil && *flag }

// TestReferences checks references of pods and services: the volumes, secrets, config maps, ports
// and pods that they name exist. The test ignores secrets of the operator, whose names begin with
// own.
func TestReferences(t *testing.T) { eachValueSet(t, checkReferences) }

func checkReferences(t *testing.T, c *cluster) {
	for _, p := range c.pods {
		volumes := map[string]bool{}
		for _, v := range p.spec.Volumes {
			volumes[v.Name] = true
			switch {
			case v.Secret != nil && !strings.HasPrefix(v.Secret.SecretName, "own") &&
				c.files["Secret/"+v.Secret.SecretName] == nil:
				t.Errorf("%s: there is no secret %s", p.name, v.Secret.SecretName)
			case v.ConfigMap != nil && c.files["ConfigMap/"+v.ConfigMap.Name] == nil:
				t.Errorf("%s: there is no config map %s", p.name, v.ConfigMap.Name)
			}
		}
		for _, one := range p.spec.Containers {
			for _, m := range one.VolumeMounts {
				if !volumes[m.Name] {
					t.Errorf("%s: there is no volume %s", p.name, m.Name)
				}
			}
			for _, probe := range []*core.Probe{one.StartupProbe, one.LivenessProbe, one.ReadinessProbe} {
				if probe != nil && probe.HTTPGet != nil && !hasPort(one, probe.HTTPGet.Port) {
					t.Errorf("%s: there is no port %s for a probe", p.name, &probe.HTTPGet.Port)
				}
			}
		}
	}
	for name, s := range c.services {
		pods := c.selectedPods(&meta.LabelSelector{MatchLabels: s.Selector})
		if len(pods) == 0 {
			t.Errorf("service %s selects no pods", name)
		}
		for _, p := range c.pods {
			if slices.Contains(pods, p.name) && !hasPort(p.spec.Containers[0], s.Ports[0].TargetPort) {
				t.Errorf("service %s: %s has no port %s", name, p.name, &s.Ports[0].TargetPort)
			}
		}
	}
}

func hasPort(c core.Container, port intstr.IntOrString) bool {
	return slices.ContainsFunc(c.Ports, func(p core.ContainerPort) bool {
		return p.Name == port.StrVal ||
			p.ContainerPort == port.IntVal
	})
}

// TestMasters checks that the five masters differ only in their number. Each has a volume and a
// node of its own, and an upgrade of the chart does not restart them.
func TestMasters(t *testing.T) {
	c := load(t, requiredValues...)
	if len(c.statefulSets) != 5 {
		t.Fatalf("%d masters, want 5", len(c.statefulSets))
	}
	first := *c.statefulSets[0].DeepCopy()
	removeDifferences(&first)
	for _, s := range c.statefulSets {
		if *s.Spec.Replicas != 1 || s.Spec.UpdateStrategy.Type != apps.OnDeleteStatefulSetStrategyType ||
			len(s.Spec.VolumeClaimTemplates) != 1 {
			t.Errorf("%s: %+v", s.Name, s.Spec)
		}
		if service, known := c.services[s.Spec.ServiceName]; !known || service.ClusterIP != core.ClusterIPNone {
			t.Errorf("%s: %s is no headless service", s.Name, s.Spec.ServiceName)
		}
		apart := s.Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		if len(apart) != 1 || apart[0].TopologyKey != core.LabelHostname || len(c.selectedPods(apart[0].LabelSelector)) != 5 {
			t.Errorf("%s is not kept apart from the others: %+v", s.Name, apart)
		}
		other := *s.DeepCopy()
		removeDifferences(&other)
		if !reflect.DeepEqual(other, first) {
			t.Errorf("%s is not as the first but for its number", s.Name)
		}
		if s.Spec.Template.Labels["redlock-master"] != strings.TrimPrefix(s.Name, "redlock-proxy-master-") ||
			len(c.selectedPods(s.Spec.Selector)) != 1 {
			t.Errorf("%s selects %v", s.Name, c.selectedPods(s.Spec.Selector))
		}
	}
}

// removeDifferences removes the name and the labels in which masters differ.
func removeDifferences(s *apps.StatefulSet) {
	s.Name = ""
	delete(s.Spec.Selector.MatchLabels, "redlock-master")
	delete(s.Spec.Template.Labels, "redlock-master")
}

// TestBudgets checks that Kubernetes may evict one master and one proxy at a time, and that the
// budgets select no other pods.
func TestBudgets(t *testing.T) {
	c := load(t, requiredValues...)
	masters, proxies := c.budgets["redlock-proxy-masters"], c.budgets["redlock-proxy"]
	if got := c.selectedPods(masters.Selector); len(got) != 5 || masters.MinAvailable == nil ||
		masters.MinAvailable.IntValue() != 4 {
		t.Errorf("the budget of the masters: %v of %v", masters.MinAvailable, got)
	}
	if got := c.selectedPods(proxies.Selector); !slices.Equal(got, []string{"redlock-proxy"}) ||
		proxies.MaxUnavailable == nil || proxies.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the budget of the proxies: %v of %v", proxies.MaxUnavailable, got)
	}
}

// TestNetwork checks that only proxies and the init job reach the masters, and that the masters
// open no connections.
func TestNetwork(t *testing.T) {
	c := load(t, requiredValues...)
	p := c.policies["redlock-proxy-masters"]
	if got := c.selectedPods(&p.PodSelector); len(got) != 5 || len(p.PolicyTypes) != 2 || len(p.Egress) != 0 ||
		len(p.Ingress) != 1 || len(p.Ingress[0].From) != 1 {
		t.Fatalf("the policy of the masters, of %v: %+v", got, p)
	}
	want := []string{"redlock-proxy", "redlock-proxy-init"}
	for _, selector := range []*meta.LabelSelector{p.Ingress[0].From[0].PodSelector,
		ptr(c.policies["redlock-proxy"].PodSelector)} {
		if got := c.selectedPods(selector); !slices.Equal(got, want) {
			t.Errorf("a policy is for %v, want %v", got, want)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// TestDrainFits checks that Kubernetes waits longer than the sum of drain-delay and the 10 s in
// which a proxy drains.
func TestDrainFits(t *testing.T) {
	for _, p := range load(t, requiredValues...).pods {
		if p.name != "redlock-proxy" {
			continue
		}
		var delay time.Duration
		for _, v := range p.spec.Containers[0].Env {
			if v.Name == "REDLOCK_DRAIN_DELAY" {
				delay, _ = time.ParseDuration(v.Value)
			}
		}
		grace := time.Duration(*p.spec.TerminationGracePeriodSeconds) * time.Second
		if delay < 2*time.Second || grace < delay+15*time.Second {
			t.Errorf("drain-delay %v, terminationGracePeriodSeconds %v", delay, grace)
		}
	}
}

// TestSwitches checks that the values switch objects on and off: the chart renders the expected
// number of each kind.
func TestSwitches(t *testing.T) {
	for name, want := range map[string]struct{ masters, policies, budgets, otherKinds int }{
		"preset": {5, 2, 2, 0}, "everything": {5, 2, 2, 3}, "little": {3, 0, 0, 0}, "own masters": {0, 1, 1, 0},
		"own secrets": {5, 2, 2, 0},
	} {
		c := load(t, valueSets[name]...)
		if len(c.statefulSets) != want.masters || len(c.policies) != want.policies || len(c.budgets) != want.budgets ||
			len(c.otherKinds) != want.otherKinds {
			t.Errorf("%s: %d masters, %d policies, %d budgets and %v, want %+v", name, len(c.statefulSets), len(c.policies),
				len(c.budgets), c.otherKinds, want)
		}
	}
}

// TestRefused checks that the chart refuses invalid values with an error that names them.
func TestRefused(t *testing.T) {
	for values, want := range map[string]string{
		"masters.count=2":                          "masters.count: 3 or 5",
		"masters.count=0":                          "existingSettings names a secret",
		"masters.existingSecret=own":               "existingSettings names a secret",
		"masters.count=three":                      "/masters/count",
		"proxis.count=3":                           "'proxis' not allowed",
		"proxies.count=0":                          "/proxies/count",
		"proxies.service.type=Loadbalancer":        "/proxies/service/type",
		"proxies.extraVolumes[0].secret=a":         "missing property 'name'",
		"proxies.env.REDLOCK_PROTECTED_MODE=false": "REDLOCK_PROTECTED_MODE",
		"masters.podAnnotations.a=1":               "/masters/podAnnotations/a",
		"monitoring.enabled=true":                  "'enabled' not allowed",
		"settings=none":                            "/settings",
	} {
		wantRefused(t, want, append(requiredValues, "--set", values)...)
	}
}

func wantRefused(t *testing.T, want string, values ...string) {
	t.Helper()
	out, err := helm(append([]string{"template", "redlock-proxy", chart}, values...)...)
	if err == nil || len(out) > 0 || !strings.Contains(err.Error(), want) {
		t.Errorf("%v: got %v and %d bytes, want %q", values, err, len(out), want)
	}
}

// TestLint checks that helm lint reports neither a warning nor an error.
func TestLint(t *testing.T) {
	out, err := helm("lint", "--strict", chart)
	if err != nil || strings.Contains(string(out), "WARNING") || strings.Contains(string(out), "ERROR") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAlerts checks that the chart's rules are the rules in deploy/prometheus.
func TestAlerts(t *testing.T) {
	alerts, err := os.ReadFile("../../prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	made := string(render(t, "--set", "protectedMode=false", "--set", "monitoring.prometheusRule.enabled=true"))
	for line := range strings.Lines(string(alerts)) {
		if !strings.Contains(made, strings.TrimSpace(line)) {
			t.Errorf("the chart's rules do not have %q", line)
		}
	}
}
