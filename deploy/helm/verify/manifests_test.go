package verify

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// pod holds a pod template with its volume claims, and the name of the object that contains the
// template.
type pod struct {
	name        string
	labels      labels.Set
	annotations map[string]string
	spec        core.PodSpec
}

// cluster holds the objects of the rendered manifests, by kind.
type cluster struct {
	pods         []pod
	policies     map[string]networking.NetworkPolicySpec
	budgets      map[string]policy.PodDisruptionBudgetSpec
	services     map[string]core.ServiceSpec
	files        map[string][]string // names of the files, by "Secret/name" or "ConfigMap/name"
	statefulSets []apps.StatefulSet
	otherKinds   []string // kinds that are only checked for their types
}

// requiredValues holds arguments that decide protected mode. The chart does not render while
// protected mode is undecided.
var requiredValues = []string{"--set", "protectedMode=false"}

// valueSets holds named sets of arguments for helm template; the tests render the chart with each.
var valueSets = map[string][]string{
	"preset": requiredValues,
	"everything": {"--set", "settings.upstream=redis://redis:6379", "--set", "monitoring.serviceMonitor.enabled=true",
		"--set", "monitoring.serviceMonitor.labels.a=b",
		"--set", "monitoring.prometheusRule.enabled=true", "--set", "masters.storage.class=fast", "--set",
		"masters.nodeSelector.disk=ssd",
		"--set-json", `proxies.tolerations=[{"key":"a","operator":"Exists"}]`, "--set",
		"proxies.env.REDLOCK_MAX_TTL=1h", "--set", "proxies.imagePullSecrets[0].name=pull",
		"--set", "proxies.service.annotations.a=b", "--set", "proxies.service.type=LoadBalancer", "--set",
		"proxies.readyNeedsMasters=true",
		"--set", "users.existingSecret=own-users", "--set", "serviceAccount.create=true", "--set",
		"serviceAccount.annotations.a=b",
		"--set", "proxies.podAnnotations.a=b", "--set", "masters.podAnnotations.a=c",
		"--set", "proxies.extraVolumes[0].name=tls", "--set", "proxies.extraVolumes[0].secret.secretName=own-tls",
		"--set", "proxies.extraVolumeMounts[0].name=tls", "--set", "proxies.extraVolumeMounts[0].mountPath=/etc/tls"},
	"little": {"--set", "masters.count=3", "--set", "masters.antiAffinity=false", "--set",
		"networkPolicy.enabled=false", "--set", "podDisruptionBudgets=false", "--set", "init=false", "--set",
		"protectedMode=false"},
	"own masters": {"--set", "masters.count=0", "--set", "existingSettings=own", "--set", "protectedMode=true"},
	"own secrets": {"--set", "masters.existingSecret=own-masters", "--set", "existingSettings=own", "--set",
		"protectedMode=true"},
}

// decoder returns a strict decoder: a field that Kubernetes does not know is an error.
func decoder(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apps.AddToScheme, batch.AddToScheme, core.AddToScheme,
		networking.AddToScheme, policy.AddToScheme, monitoring.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

// render returns the manifests of the chart with these values, for a release named redlock-proxy.
func render(t *testing.T, values ...string) []byte {
	t.Helper()
	out, err := helm(append([]string{"template", "redlock-proxy", chart, "--namespace", "locks"}, values...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const chart = "../redlock-proxy"

// helmEnv names the environment variable in which TestMain stores the path of helm. A lookup by the
// go tool before each call would take a second.
const helmEnv = "REDLOCK_TEST_HELM"

// TestMain builds the helm of this module, and stores its path.
func TestMain(m *testing.M) {
	path, err := exec.Command("go", "tool", "-n", "helm").Output()
	if err != nil {
		panic(err)
	}
	if err := os.Setenv(helmEnv, strings.TrimSpace(string(path))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// helm runs helm with these arguments, and returns its output.
func helm(args ...string) ([]byte, error) {
	cmd := exec.Command(os.Getenv(helmEnv), args...)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("helm %v: %w\n%s%s", args, err, out, &failure)
	}
	return out, err
}

// decode reads all YAML documents of source.
func decode(d runtime.Decoder, source []byte) (objects []runtime.Object, err error) {
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(source)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if onlyCommentsPattern.Match(document) {
			continue
		}
		object, _, err := d.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, document)
		}
		objects = append(objects, object)
	}
}

var onlyCommentsPattern = regexp.MustCompile(`\A(\s*(#.*)?\n)*\z`)

func load(t *testing.T, values ...string) *cluster {
	t.Helper()
	c := &cluster{
		policies: map[string]networking.NetworkPolicySpec{}, budgets: map[string]policy.PodDisruptionBudgetSpec{},
		services: map[string]core.ServiceSpec{}, files: map[string][]string{},
	}
	objects, err := decode(decoder(t), render(t, values...))
	if err != nil || len(objects) == 0 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	for _, object := range objects {
		if err := c.add(object); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// eachValueSet runs a test with each element of valueSets.
func eachValueSet(t *testing.T, test func(t *testing.T, c *cluster)) {
	t.Helper()
	for name, values := range valueSets {
		t.Run(name, func(t *testing.T) { test(t, load(t, values...)) })
	}
}

// add adds an object to the objects of its kind.
func (c *cluster) add(object runtime.Object) error {
	switch o := object.(type) {
	case *apps.StatefulSet:
		c.statefulSets = append(c.statefulSets, *o)
		return c.addPod(o.ObjectMeta, o.Spec.Template, o.Spec.Selector, o.Spec.VolumeClaimTemplates)
	case *apps.Deployment:
		return c.addPod(o.ObjectMeta, o.Spec.Template, o.Spec.Selector, nil)
	case *batch.Job:
		return c.addPod(o.ObjectMeta, o.Spec.Template, nil, nil)
	case *core.Service:
		c.services[o.Name] = o.Spec
	case *core.ConfigMap:
		c.addFiles("ConfigMap/"+o.Name, o.Data)
	case *core.Secret:
		c.addFiles("Secret/"+o.Name, o.StringData)
	case *policy.PodDisruptionBudget:
		c.budgets[o.Name] = o.Spec
	case *networking.NetworkPolicy:
		c.policies[o.Name] = o.Spec
	case *monitoring.ServiceMonitor, *monitoring.PrometheusRule, *core.ServiceAccount:
		c.otherKinds = append(c.otherKinds, object.GetObjectKind().GroupVersionKind().Kind)
	default:
		return fmt.Errorf("a %T is not expected", object)
	}
	return nil
}

func (c *cluster) addFiles(name string, data map[string]string) {
	for key := range data {
		c.files[name] = append(c.files[name], key)
	}
}

// addPod adds a pod template. The labels of the template must match selector, unless selector is
// nil.
func (c *cluster) addPod(of meta.ObjectMeta, template core.PodTemplateSpec, selector *meta.LabelSelector, claims []core.PersistentVolumeClaim) error {
	p := pod{of.Name, template.Labels, template.Annotations, template.Spec}
	for _, claim := range claims {
		p.spec.Volumes = append(p.spec.Volumes, core.Volume{Name: claim.Name, VolumeSource: core.VolumeSource{
			PersistentVolumeClaim: &core.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}})
	}
	c.pods = append(c.pods, p)
	if selector != nil && !selects(selector, p) {
		return fmt.Errorf("%s does not select its own pods", of.Name)
	}
	return nil
}

func selects(selector *meta.LabelSelector, p pod) bool {
	s, err := meta.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(p.labels)
}

// selectedPods returns the names of the pods that a selector matches.
func (c *cluster) selectedPods(selector *meta.LabelSelector) (names []string) {
	for _, p := range c.pods {
		if selects(selector, p) {
			names = append(names, p.name)
		}
	}
	return names
}
