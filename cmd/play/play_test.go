// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/sandbox"
)

func TestAnExampleComesAliveAndLinesSayHow(t *testing.T) {
	s := newStage(t)
	s.begin()
	for _, line := range []string{
		`^operator sites runs against an API server in this process`,
		`^It is not a cluster: no containers run, Pods only say so`,
		`^crds/sites.example.com +sites +created$`,
		`^sites/home +play +created$`,
		`^deployments/home +web +created$`,
		`^pods/home-\S+ +workloads +Running, ready$`,
		`^deployments/home +workloads +2 of 2 replicas ready$`,
	} {
		s.awaits(line)
	}
	s.awaits(`^sites/home +sites +.*Ready=True`)
	s.end()
}

func TestAnOperatorThatElectsALeaderPlays(t *testing.T) {
	for name, election := range map[string]string{
		"by a Lease":                   "{mode: lease}",
		"by a Lease that is described": "{mode: lease, name: lock, namespace: elsewhere, leaseDuration: 20s}",
		"for life":                     "{mode: life, namespace: elsewhere}",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.write("operator.yaml", sites+"settings: {leaderElection: "+election+"}\n")
			s.begin()
			s.awaits(`^deployments/home +web +created$`)
			s.end()
		})
	}
}

func TestAWordThatIsABooleanIsNamed(t *testing.T) {
	s := newStage(t)
	s.write("example-config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  debug: off\n")
	s.begin()
	s.awaits(`^creating ConfigMap a of .*example-config.yaml: .*debug: expected string, .*a word without quotes is a boolean: off in line 5 is false$`)
	s.end()
}

func TestWritesOfOthersHaveLines(t *testing.T) {
	s := newStage(t)
	s.begin()
	client := s.client(s.kubeconfig())
	s.awaits(`^deployments/home +workloads +2 of 2`)
	scale := func(resource string) {
		gvr := siteGVR
		if resource == "deployments" {
			gvr = deploymentGVR
		}
		if _, err := client.Resource(gvr).Namespace("default").Patch(t.Context(), "home", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	scale("deployments")
	s.awaits(`^deployments/home +somebody +spec.replicas 2 → 3$`)
	s.awaits(`^deployments/home +web +spec.replicas 3 → 2$`)
	scale("sites")
	s.awaits(`^sites/home +somebody +spec.replicas 2 → 3$`)
	s.awaits(`^deployments/home +web +spec.replicas 2 → 3, annotation sites.handwerk.dev/applied$`)
	for _, large := range []string{"1234567890123456788", "1234567890123456789"} { // floating point numbers take them for one
		patch := `{"metadata":{"labels":{"a":"b` + large + `"}},"spec":{"large":` + large + `}}`
		if _, err := client.Resource(siteGVR).Namespace("default").Patch(t.Context(), "home", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.awaits(`^sites/home +somebody +label a=b1234567890123456789, spec.large 1234567890123456788 → 1234567890123456789$`)

	if _, err := client.Resource(siteGVR).Namespace("nowhere").Create(t.Context(), s.get(client, siteGVR, "home"), metav1.CreateOptions{}); err == nil {
		t.Error("an object is created where there is no namespace")
	}
	s.awaits(`^sites/nowhere/home +somebody +create refused, 400 Bad Request: the namespace of the provided object does not match`)
	if err := client.Resource(siteGVR).Namespace("default").Delete(t.Context(), "home", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaits(`^sites/home +somebody +deleted$`)
	s.awaits(`^deployments/home +controllers +deleted$`)
	s.awaits(`^pods/home-\S+ +workloads +gone$`)
	s.end()
}

func TestADeploymentThatIsMadeAgainComesAlive(t *testing.T) {
	s := newStage(t)
	s.begin()
	client := s.client(s.kubeconfig())
	s.awaits(`^deployments/home +workloads +2 of 2`)
	if err := client.Resource(deploymentGVR).Namespace("default").Delete(t.Context(), "home", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaits(`^deployments/home +somebody +deleted$`)
	s.awaits(`^deployments/home +web +created$`)
	s.awaits(`^deployments/home +workloads +2 of 2`)
	s.end()
	if text := s.out.String(); strings.Contains(text, "cannot come alive") {
		t.Errorf("what goes soon is an error:\n%s", text)
	}
}

func TestAWorkloadThatCannotComeAliveHasALine(t *testing.T) {
	s := newStage(t)
	s.begin()
	client := s.client(s.kubeconfig())
	taken := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "db-0"}, "spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a"}}}}}
	if _, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("default").Create(t.Context(), taken, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labels := map[string]any{"app": "db"}
	set := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{"name": "db"}, "spec": map[string]any{
		"selector": map[string]any{"matchLabels": labels}, "serviceName": "db",
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": taken.Object["spec"]},
	}}}
	if _, err := client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}).Namespace("default").Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaits(`^statefulsets/db +Workload cannot come alive: pods "db-0" already exists$`)
	s.end()
}

func TestWhatGoesWithItsNamespaceHasLines(t *testing.T) {
	s := newStage(t)
	s.begin()
	client := s.client(s.kubeconfig())
	s.awaits(`^deployments/home +workloads +2 of 2`)
	namespaces := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	shop := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop"}}}
	if _, err := namespaces.Create(t.Context(), shop, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	site := s.get(client, siteGVR, "home")
	for _, field := range []string{"resourceVersion", "uid", "namespace"} {
		unstructured.RemoveNestedField(site.Object, "metadata", field)
	}
	if _, err := client.Resource(siteGVR).Namespace("shop").Create(t.Context(), site, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaits(`^deployments/shop/home +workloads +2 of 2`)
	if err := namespaces.Delete(t.Context(), "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaits(`^namespaces/shop +somebody +is being deleted$`)
	s.awaits(`^deployments/shop/home +controllers +deleted$`)
	s.awaits(`^sites/shop/home +controllers +deleted$`)
	s.awaits(`^namespaces/shop +controllers +deleted$`)
	s.end()
	for line := range strings.Lines(s.out.String()) {
		for _, noise := range []string{"replicasets/", "kube-root-ca.crt", "serviceaccounts/"} {
			if strings.Contains(line, noise) {
				t.Errorf("a line is noise: %s", line)
			}
		}
	}
}

func TestAChangeOfTheConfigurationStartsTheOperatorAgain(t *testing.T) {
	s := newStage(t)
	s.begin()
	client := s.client(s.kubeconfig())
	s.awaits(`^deployments/home +workloads +2 of 2`)

	s.write("operator.yaml", strings.Replace(sites, "image: nginx", "image: httpd", 1))
	s.awaits(`operator.yaml changed: the operator starts again$`)
	s.awaits(`^deployments/home +web +spec.template.spec.containers\[0\].image nginx → httpd, annotation sites.handwerk.dev/applied$`)

	s.write("operator.yaml", strings.Replace(sites, "apply:", "aply:", 1))
	s.awaits(`^the configuration has changed, and the last one goes on: .*operator.yaml:11:9: resources\[0\].handlers\[0\].aply: unknown field`)
	if _, err := client.Resource(siteGVR).Namespace("default").Patch(t.Context(), "home", types.MergePatchType, []byte(`{"spec":{"replicas":4}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaits(`^deployments/home +web +spec.replicas 2 → 4, annotation sites.handwerk.dev/applied$`)

	s.write("operator.yaml", sites)
	s.awaits(`operator.yaml changed: the operator starts again$`)
	s.awaits(`^deployments/home +web +spec.template.spec.containers\[0\].image httpd → nginx, annotation sites.handwerk.dev/applied$`)
	s.end()
}

func TestAChangedExampleIsAppliedAndTheOperatorGoesOn(t *testing.T) {
	s := newStage(t)
	s.begin()
	// Before its status is written, the Deployment also gets annotations of its controller, which would stand in the same line.
	s.awaits(`^deployments/home +workloads +2 of 2`)
	s.write("example.yaml", strings.Replace(example, "replicas: 2", "replicas: 3", 1))
	s.awaits(`^sites/home +play +spec.replicas 2 → 3$`)
	s.awaits(`^deployments/home +web +spec.replicas 2 → 3, annotation sites.handwerk.dev/applied$`)
	s.end()
	if text := s.out.String(); strings.Contains(text, "starts again") {
		t.Errorf("the operator was started again:\n%s", text)
	}
}

func TestCtrlCLeavesNothing(t *testing.T) {
	s := newStage(t)
	t.Setenv("TMPDIR", t.TempDir())
	s.begin()
	kubeconfig := s.kubeconfig()
	s.awaits(`^deployments/home +workloads +2 of 2`)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	s.end()
	if left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	at, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	if link, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at.Host); err == nil {
		_ = link.Close()
		t.Errorf("%s is open", at.Host)
	}
	s.awaitNoGoroutines()
}

func TestAFaultyConfigurationIsNotPlayed(t *testing.T) {
	s := newStage(t)
	s.write("operator.yaml", strings.Replace(sites, "apply:", "aply:", 1))
	s.begin()
	if err := <-s.ended; err == nil || !strings.Contains(err.Error(), `operator.yaml:11:9: resources[0].handlers[0].aply: unknown field`) {
		t.Errorf("the play ended with %v", err)
	}
}

func TestAKeptStateGoesOn(t *testing.T) {
	first := newStage(t)
	first.settings.Keep = filepath.Join(t.TempDir(), "state")
	first.begin()
	kubeconfig := first.kubeconfig()
	if want := filepath.Join(first.settings.Keep, "kubeconfig"); kubeconfig != want {
		t.Errorf("the kubeconfig is %s, want %s", kubeconfig, want)
	}
	first.awaits(`^Its objects are kept in `)
	client := first.client(kubeconfig)
	first.awaits(`^sites/home +sites +.*Ready=True`)
	before := first.get(client, deploymentGVR, "home")
	first.end()
	if entries, err := os.ReadDir(first.settings.Keep); err != nil || len(entries) != 1 || entries[0].Name() != "state.json" {
		t.Errorf("it has left %v: %v", entries, err)
	}

	second := newStage(t)
	second.settings.Keep = first.settings.Keep
	second.begin()
	client = second.client(second.kubeconfig())
	second.awaits(`^It goes on with the objects that are kept in `)
	second.awaits(`^sites/home +web +handler succeeded \(resume\)$`)
	after := second.get(client, deploymentGVR, "home")
	if before.GetUID() != after.GetUID() || before.GetResourceVersion() != after.GetResourceVersion() {
		t.Errorf("the Deployment was %s at %s, and is %s at %s", before.GetUID(), before.GetResourceVersion(), after.GetUID(), after.GetResourceVersion())
	}
	if _, err := client.Resource(siteGVR).Namespace("default").Patch(t.Context(), "home", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	second.awaits(`^deployments/home +workloads +3 of 3 replicas ready$`)
	second.end()
	if text := second.out.String(); strings.Contains(text, "created") {
		t.Errorf("something was created again:\n%s", text)
	}
}

func TestADirectoryHasOnePlay(t *testing.T) {
	first, second := newStage(t), newStage(t)
	first.settings.Keep = t.TempDir()
	second.settings.Keep = first.settings.Keep
	first.begin()
	first.awaits(`^deployments/home +web +created$`)
	second.begin()
	if err := <-second.ended; !errors.Is(err, sandbox.ErrInUse) || !strings.Contains(err.Error(), "locking "+first.settings.Keep) {
		t.Errorf("the second play ended with %v", err)
	}
	first.end()
	third := newStage(t)
	third.settings.Keep = first.settings.Keep
	third.begin()
	third.awaits(`^It goes on with`)
	third.end()
}

func TestAStateThatCannotBeReadIsLeftAsItIs(t *testing.T) {
	s := newStage(t)
	s.settings.Keep = t.TempDir()
	file := filepath.Join(s.settings.Keep, "state.json")
	if err := os.WriteFile(file, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.begin()
	if err := <-s.ended; err == nil || !strings.HasPrefix(err.Error(), "reading "+file) {
		t.Errorf("the play ended with %v", err)
	}
	if data, err := os.ReadFile(file); string(data) != "nonsense" {
		t.Errorf("the state is %q: %v", data, err)
	}
}

// TestAnOperatorThatDoesNotStartIsReplacedByTheLastOne changes the operator to one with a startup that fails for good.
func TestAnOperatorThatDoesNotStartIsReplacedByTheLastOne(t *testing.T) {
	s := newStage(t)
	load, loads := s.settings.Load, 0
	s.settings.Load = func() (*dsl.Operator, error) {
		op, err := load()
		if loads++; err == nil && loads > 1 {
			op.OnStartup("connect", func(context.Context, *dsl.Request) error { return dsl.Permanent(errors.New("no database")) })
		}
		return op, err
	}
	s.begin()
	client := s.client(s.kubeconfig())
	s.awaits(`^deployments/home +web +created$`)
	s.write("operator.yaml", strings.Replace(sites, "image: nginx", "image: httpd", 1))
	s.awaits(`^the last configuration goes on: running operator sites: running startup connect: .*no database`)
	s.awaits(`^operator starts resources=\[sites.v1.example.com\]$`)
	if _, err := client.Resource(siteGVR).Namespace("default").Patch(t.Context(), "home", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.awaits(`^deployments/home +web +spec.replicas 2 → 3, annotation `)
	s.end()
}

// TestExamplesMeetTheRules holds that rules are in force, as policies and as webhooks, when the examples are created.
func TestExamplesMeetTheRules(t *testing.T) {
	for _, by := range []string{"policy", "webhook"} {
		t.Run(by, func(t *testing.T) {
			s := newStage(t)
			s.write("operator.yaml", sites+"    validate: [{id: small, rule: self.spec.replicas < 2, message: too many, enforce: "+by+"}]\n")
			s.begin()
			s.awaits(`creating Site home of .*example.yaml: .*denied.* too many`)
			s.write("operator.yaml", sites+"    validate: [{id: small, rule: self.spec.replicas < 3, message: too many, enforce: "+by+"}]\n")
			s.awaits(`^sites/home +play +created$`)
			s.end()
		})
	}
}
