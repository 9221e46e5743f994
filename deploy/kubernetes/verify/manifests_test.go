package verify

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

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

// pod is a pod template, and what it stands in.
type pod struct {
	name   string
	labels labels.Set
	spec   core.PodSpec
}

// cluster is all that the manifests make, by kind.
type cluster struct {
	pods     []pod
	policies map[string]networking.NetworkPolicySpec
	budgets  map[string]policy.PodDisruptionBudgetSpec
	services map[string]core.ServiceSpec
	files    map[string][]string // of secrets and config maps: "Secret/name" and their keys
	stateful []apps.StatefulSet
}

// decoder reads manifests strictly: what Kubernetes does not know is an error.
func decoder(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apps.AddToScheme, batch.AddToScheme, core.AddToScheme, networking.AddToScheme, policy.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

// sources are the manifests, and those that make-secrets prints.
func sources(t *testing.T) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("../*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal("there are no manifests", err)
	}
	found := map[string][]byte{}
	for _, path := range paths {
		if found[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if found["make-secrets"], err = exec.Command("../make-secrets", "redis://redis").Output(); err != nil {
		t.Fatal(err)
	}
	return found
}

// decode reads all documents of a source.
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
		if onlyComments.Match(document) {
			continue
		}
		object, _, err := d.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, document)
		}
		objects = append(objects, object)
	}
}

var onlyComments = regexp.MustCompile(`\A(\s*(#.*)?\n)*\z`)

func load(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{
		policies: map[string]networking.NetworkPolicySpec{}, budgets: map[string]policy.PodDisruptionBudgetSpec{},
		services: map[string]core.ServiceSpec{}, files: map[string][]string{},
	}
	d := decoder(t)
	for name, source := range sources(t) {
		objects, err := decode(d, source)
		if err != nil || len(objects) == 0 {
			t.Fatalf("%s: %d objects, %v", name, len(objects), err)
		}
		for _, object := range objects {
			if err := c.add(object); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	return c
}

// add keeps an object by its kind.
func (c *cluster) add(object runtime.Object) error {
	switch o := object.(type) {
	case *apps.StatefulSet:
		c.stateful = append(c.stateful, *o)
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

// addPod keeps a template. What selects its pods must match their labels.
func (c *cluster) addPod(of meta.ObjectMeta, template core.PodTemplateSpec, selector *meta.LabelSelector, claims []core.PersistentVolumeClaim) error {
	p := pod{of.Name, template.Labels, template.Spec}
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

// selected are the names of the pods that a selector matches.
func (c *cluster) selected(selector *meta.LabelSelector) (names []string) {
	for _, p := range c.pods {
		if selects(selector, p) {
			names = append(names, p.name)
		}
	}
	return names
}
