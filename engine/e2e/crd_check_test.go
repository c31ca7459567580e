// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/handlers"
)

// misspelt is an operator without a schema, whose faults only a cluster can find.
const misspelt = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: webapp}
resources:
  - resource: webapps.v1alpha1.GROUP
    related: [{name: nodes, resource: nodes.v1}]
    handlers:
      - id: children
        when: self.spec.replcias > 0
        apply:
          deployment:
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: "${self.metadata.name}"}
            spec:
              replcas: ${self.spec.replicas}
              selector: {matchLabels: {app: web}}
              template:
                metadata: {labels: {app: web}}
                spec: {containers: [{name: main, image: "${self.spec.image}"}]}
`

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// refused has a CRD with a fault that only an API server knows.
const refused = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: webapp}
resources:
  - resource: webapps.v1alpha1.GROUP
    schema:
      kind: WebApp
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations: [{rule: "true", reason: Bad}]
    handlers:
      - {id: status, set: {annotations: {seen: "yes"}}}
`

// TestTheServerIsAskedAboutTheCRDs holds that what the API server alone would refuse is reported with a
// place, that nothing is written, and that a missing right is reported.
func TestTheServerIsAskedAboutTheCRDs(t *testing.T) {
	t.Parallel()
	group := ownGroup("dryrun")
	writer, reader := plane.User("dryrunner"), plane.User("reader")
	writer.Allow(t, crdRules("create", "patch"))
	validate := func(t *testing.T, user *cluster.User, text string) (code int, said string) {
		t.Helper()
		file := write(t, strings.ReplaceAll(text, "GROUP", group))
		p := plane.Operator(t, cluster.Launch{Args: []string{"validate", "--cluster", "--config", file}, Config: user.Config()})
		code = p.Wait(t).Code
		return code, strings.ReplaceAll(strings.Join(p.All(), "\n"), filepath.Dir(file)+"/", "")
	}
	tests := map[string]struct {
		user *cluster.User
		text string
		code int
		want string
	}{
		"a CRD that is refused is a fault": {writer, refused, 1,
			"operator.yaml:8:7: resources[0].schema: the API server rejects the CRD: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].reason: Unsupported value"},
		"a CRD that is taken is none": {writer, strings.ReplaceAll(refused, "Bad", "FieldValueInvalid"), 0, ": ok"},
		"a missing right is reported": {reader, refused, 0, "warning: the API server was not asked whether it accepts the CRD of webapps.v1alpha1." + group},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			code, said := validate(t, test.user, test.text)
			if code != test.code || !strings.Contains(said, test.want) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, test.code, test.want, said)
			}
			if strings.Contains(said, "was not asked") != (test.user == reader) {
				t.Errorf("of rights it says:\n%s", said)
			}
			if strings.Contains(said, "was not checked") {
				t.Errorf("what the configuration itself describes was checked, and it says:\n%s", said)
			}
		})
	}
	gvr := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := plane.Dynamic().Resource(gvr).Get(t.Context(), "webapps."+group, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the CRD is there: %v", err)
	}
}

func TestAConfigurationIsHeldAgainstTheCluster(t *testing.T) {
	t.Parallel()
	group := ownGroup("check")
	admin := plane.User("installer")
	admin.Allow(t, crdRules("get", "create", "patch"))
	file := write(t, strings.ReplaceAll(misspelt, "GROUP", group))
	validate := func(t *testing.T) (cluster.Exit, []string) {
		p := plane.Operator(t, cluster.Launch{Args: []string{"validate", "--cluster", "--config", file}, Config: plane.User("reader").Config()})
		exit := p.Wait(t)
		var lines []string
		for _, line := range p.All() {
			lines = append(lines, strings.TrimPrefix(line, filepath.Dir(file)+"/"))
		}
		return exit, lines
	}
	t.Run("a CRD that is not there is a warning", func(t *testing.T) {
		exit, lines := validate(t)
		text := strings.Join(lines, "\n")
		if !strings.Contains(text, "warning: resolving resource webapps.v1alpha1."+group) || !strings.Contains(text, "replcas") || strings.Contains(text, "replcias\" in") {
			t.Errorf("exit code %d:\n%s", exit.Code, text)
		}
	})
	install(t, admin, described(t, group, "v1alpha1", `image: string | required=true, replicas: integer | default=1`))
	t.Run("typos are reported with their places", func(t *testing.T) {
		exit, lines := validate(t)
		want := []string{
			`operator.yaml:10:25: resources[0].handlers[0].when: unknown field "replcias" in self.spec (did you mean "replicas"?)`,
			`  when: self.spec.replcias > 0`,
			`                  ^`,
		}
		if len(lines) < 5 || exit.Code != 1 {
			t.Fatalf("exit code %d:\n%s", exit.Code, strings.Join(lines, "\n"))
		}
		if diff := cmp.Diff(want, lines[:3]); diff != "" {
			t.Errorf("first fault (-want +got):\n%s", diff)
		}
		if !strings.HasPrefix(lines[3], "operator.yaml:17:") || !strings.Contains(lines[3], `replcas`) || !strings.Contains(lines[3], `did you mean "replicas"?`) {
			t.Errorf("second fault: %s", lines[3])
		}
		if got := lines[len(lines)-1]; got != "error: the configuration has 2 faults" {
			t.Errorf("in the end: %s", got)
		}
	})
}

// mistyped names unknown kinds and fields: of Kubernetes' own kinds, the cluster decides.
const mistyped = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: webapp}
resources:
  - resource: configmaps.v1
    owns: [cronjbs.batch, certificates.cert-manager.example]
    handlers:
      - id: children
        apply:
          one: {apiVersion: apps/v1, kind: Deploymnt, metadata: {name: one}}
          two: {apiVersion: v1, kind: DaemonSet, metadata: {name: two}}
          three: {apiVersion: batch/v7, kind: Job, metadata: {name: three}}
          four: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: four}}
          five: {apiVersion: v1, kind: Secret, metadata: {name: "${self.metadata.name}_x"}}
`

// TestTheClusterDecidesWhichKindsThereAre holds that a kind that is not served is reported once, with its place.
func TestTheClusterDecidesWhichKindsThereAre(t *testing.T) {
	t.Parallel()
	file := write(t, mistyped)
	p := plane.Operator(t, cluster.Launch{Args: []string{"validate", "--cluster", "--config", file}, Config: plane.User("reader").Config()})
	if exit := p.Wait(t); exit.Code != 1 {
		t.Errorf("exit code %d", exit.Code)
	}
	var lines []string
	for _, line := range p.All() {
		lines = append(lines, strings.ReplaceAll(line, filepath.Dir(file)+"/", ""))
	}
	want := []string{
		`warning: resolving resource certificates.cert-manager.example: API group cert-manager.example: not served by the API server; what is said of it was not checked (is its CRD installed?)`,
		`operator.yaml:7:12: resources[0].owns[0]: unknown resource "cronjbs" in batch (did you mean "cronjobs"?)`,
		`operator.yaml:11:44: resources[0].handlers[0].apply.one.kind: unknown kind "Deploymnt" in apps/v1 (did you mean "Deployment"?)`,
		`operator.yaml:12:29: resources[0].handlers[0].apply.two.apiVersion: v1 has no DaemonSet: want apps/v1`,
		`operator.yaml:13:31: resources[0].handlers[0].apply.three.apiVersion: the API server has no API version batch/v7: want batch/v1`,
		`operator.yaml:14:97: resources[0].handlers[0].apply.four.metadata: a CustomResourceDefinition is in no namespace and its owner, a ConfigMap, is in one, so it cannot be owned: want ownership: labelled`,
		`operator.yaml:15:65: resources[0].handlers[0].apply.five.metadata.name: is no name of a Secret: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character`,
		`error: the configuration has 6 faults`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("it says (-want +got):\n%s", diff)
	}
}

// TestARunningOperatorShowsWhatDoesNotFit lets a CRD come, and then the field that was missing.
func TestARunningOperatorShowsWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	group := ownGroup("recheck")
	admin, user := plane.User("installer"), plane.User("webapp")
	admin.Allow(t, crdRules("get", "create", "patch"))
	user.Allow(t, cluster.Rule("", "nodes", "list", "watch"), cluster.Rule(group, "webapps", "list", "watch", "patch"),
		cluster.Rule("apps", "deployments", "list", "watch", "get", "create", "patch"), crdRules("list", "watch"))
	text := strings.ReplaceAll(strings.ReplaceAll(misspelt, "GROUP", group), "replcas", "replicas")
	op, err := config.Parse("operator.yaml", []byte(text), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	op.Settings.GracePeriod = grace
	running := cluster.Run(t, op, engine.Settings{Config: user.Config()})
	running.Await(t, "not served")
	install(t, admin, described(t, group, "v1alpha1", `image: string, replicas: integer`))
	line := running.Await(t, "an expression does not fit the cluster's schemas")
	if !strings.Contains(line, "replcias") || !strings.Contains(line, "operator.yaml:10:25") {
		t.Errorf("the log says %s", line)
	}
	want := ops.Check{
		Name: "expressions/webapps.v1alpha1." + group, State: ops.Warn,
		Message: `operator.yaml:10:25: resources[0].handlers[0].when: unknown field "replcias" in self.spec (did you mean "replicas"?)`,
	}
	if got := expressions(running); got == nil || *got != want {
		t.Errorf("readyz has %+v, want %+v", got, want)
	}
	install(t, admin, described(t, group, "v1alpha1", `image: string, replicas: integer, replcias: integer`))
	running.Await(t, "expressions fit the cluster's schemas again")
	if got := expressions(running); got != nil {
		t.Errorf("readyz has %+v still", got)
	}
	if n := len(running.With("an expression does not fit")); n != 1 {
		t.Errorf("it was logged %d times", n)
	}
	running.Stop(t)
}

// expressions is what readyz says of expressions.
func expressions(r *cluster.Running) *ops.Check {
	for _, c := range r.Engine.Ready() {
		if strings.HasPrefix(c.Name, "expressions/") {
			return &c
		}
	}
	return nil
}

// TestSchemasAreAskedForOnlyWhereThereAreExpressions has two operators that differ in an expression.
func TestSchemasAreAskedForOnlyWhereThereAreExpressions(t *testing.T) {
	t.Parallel()
	user := plane.User("webapp")
	user.Allow(t, cluster.Rule("", "nodes", "list", "watch"), crdRules("get", "list", "watch"))
	asked := func(r cluster.Request) bool { return strings.HasPrefix(r.URI, "/openapi/v3") }
	start := func(when string) *cluster.Proxy {
		text := fmt.Sprintf(`
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: webapp}
resources:
  - resource: nodes.v1
    handlers: [{id: gone, causes: [delete], finalizer: false, %scall: foo.Status}]
`, when)
		op, err := config.Parse("operator.yaml", []byte(text), handlers.Standard())
		if err != nil {
			t.Fatal(err)
		}
		proxy := cluster.NewProxy(t, user.Config())
		cluster.Run(t, op, engine.Settings{Config: proxy.Config()}).Await(t, "operator starts")
		proxy.Await(t, 1, cluster.On("watch", "nodes"))
		return proxy
	}
	without := start("")
	start(`when: self.metadata.name != "a", `).Await(t, 1, asked)
	if got := without.Requests(asked); len(got) > 0 {
		t.Errorf("without expressions, it asked %v", got)
	}
}
