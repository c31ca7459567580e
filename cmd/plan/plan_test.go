// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/handlers"
	"github.com/handwerk-dev/handwerk/sandbox"
)

// sites is an operator that keeps a Deployment and a ConfigMap for each Site.
const sites = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: sites}
resources:
  - resource: sites.v1.example.com
    schema:
      kind: Site
      spec: {image: string | default="nginx:1.27", page: boolean}
      status: {image: string}
    handlers:
      - id: app
        apply:
          deployment:
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: "${self.metadata.name}"}
            spec:
              selector: {matchLabels: {app: "${self.metadata.name}"}}
              template:
                metadata: {labels: {app: "${self.metadata.name}"}}
                spec: {containers: [{name: web, image: "${self.spec.image}"}]}
          page:
            includeWhen: self.spec.?page.orValue(false)
            template:
              apiVersion: v1
              kind: ConfigMap
              metadata: {name: "${self.metadata.name}-page"}
              data: {index.html: hello}
          token:
            apiVersion: v1
            kind: Secret
            metadata: {name: "${self.metadata.name}-token"}
            stringData: {token: swordfish}
      - id: status
        set: {status: {image: "${self.spec.image}"}}
`

// site is a Site with a page, and one without.
const site = `
apiVersion: example.com/v1
kind: Site
metadata: {name: blog, namespace: shop}
spec: {page: true}
---
apiVersion: example.com/v1
kind: Site
metadata: {name: docs, namespace: shop}
spec: {image: "httpd:2"}
`

// read returns the operator of a text.
func read(t *testing.T, text string) (*dsl.Operator, *Functions) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	functions := NewFunctions(nil)
	op, err := config.Load([]string{name}, handlers.Standard().Instead(functions.Instead))
	if err != nil {
		t.Fatal(err)
	}
	return op, functions
}

// objectsOf returns the objects of a text.
func objectsOf(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	out, err := sandbox.ReadDump([]string{"-"}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// populated returns the objects of a cluster in which an operator has come to rest.
func populated(t *testing.T, op *dsl.Operator, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	cluster, warnings := newTwin(append(objects, missingCRDs(op, objects)...), namespaceOf(op, nil), WorkloadsRollout)
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	cluster.makeNamespace()
	if out, err := cluster.run(op, time.Hour); err != nil || !out.rested || len(out.failing) > 0 {
		t.Fatalf("the cluster is not populated: %+v, %v", out, err)
	}
	return cluster.objects(t)
}

// objects returns all objects of a twin, without the objects of the server itself.
func (t *twin) objects(test *testing.T) (out []*unstructured.Unstructured) {
	test.Helper()
	for _, served := range t.server.All() {
		list := decoded(t.recorder.read(place{resource: served.GVR.GroupResource()}))
		if list == nil || isAside(served.GVR.GroupResource()) || !list.IsList() {
			continue
		}
		err := list.EachListItem(func(o runtime.Object) error {
			each := o.(*unstructured.Unstructured)
			each.SetGroupVersionKind(served.GVR.GroupVersion().WithKind(served.Kind))
			if each.GetUID() != "" {
				out = append(out, each)
			}
			return nil
		})
		if err != nil {
			test.Fatal(err)
		}
	}
	return out
}

var update = flag.Bool("update", false, "write the golden files")

// secret is a template of the operator sites.
const secret = `          token:
            apiVersion: v1
            kind: Secret
            metadata: {name: "${self.metadata.name}-token"}
            stringData: {token: swordfish}
`

// TestPlan compares the plan of a changed configuration with what a person expects of it.
func TestPlan(t *testing.T) {
	last := "      - id: status\n"
	for name, tt := range map[string]struct{ old, new string }{
		"nothing":                       {"", ""},
		"a field of a template":         {`image: "${self.spec.image}"}]`, `image: "mirror/${self.spec.image}"}]`},
		"a field with one value":        {`image: "${self.spec.image}"}]`, `image: "nginx:1.29"}]`},
		"a template that is new":        {secret, secret + "          account: {apiVersion: v1, kind: ServiceAccount, metadata: {name: \"${self.metadata.name}\"}}\n"},
		"a template that is dropped":    {secret, ""},
		"a condition of a template":     {"self.spec.?page.orValue(false)", "self.spec.?image.orValue('') == 'httpd:2'"},
		"a handler that is new":         {last, "      - {id: hello, causes: [create, resume], log: {message: hello}}\n" + last},
		"a value of a Secret":           {"swordfish", "trout"},
		"a name of a child":             {`-token"`, `-secret"`},
		"a child that is left behind":   {secret, strings.Replace(strings.ReplaceAll(secret, "            ", "              "), "          token:\n", "          token:\n            onDelete: orphan\n            template:\n", 1)},
		"a function in Go":              {last, "      - {id: mail, causes: [create, update, resume], call: mail.Send}\n" + last},
		"a function that others await":  {last, "      - {id: mail, causes: [create, update, resume], call: mail.Send}\n" + last + "        after: [mail]\n"},
		"a handler that fails for good": {`{status: {image: "${self.spec.image}"}}`, `{status: {image: "${self.spec.image.split(':')[1].split('.')[1]}"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(sites, tt.old) {
				t.Fatalf("the operator has no %q", tt.old)
			}
			report := change(t, strings.Replace(sites, tt.old, tt.new, 1), Job{})
			var text strings.Builder
			if err := Text(&text, report, false); err != nil {
				t.Fatal(err)
			}
			golden(t, strings.ReplaceAll(name, " ", "-")+".golden", text.String())
		})
	}
}

// change returns the plan of a changed configuration for a cluster in which the operator sites rests.
func change(t *testing.T, changed string, job Job) (report *Report) {
	t.Helper()
	before, _ := read(t, sites)
	after, functions := read(t, changed)
	job.For = 10 * time.Minute
	job.Workloads = cmp.Or(job.Workloads, WorkloadsRollout)
	synctest.Test(t, func(t *testing.T) {
		in := &Input{Operator: after, Functions: functions, Objects: Objects{List: populated(t, before, objectsOf(t, site))}}
		var err error
		if report, err = Make(job, in); err != nil {
			t.Fatal(err)
		}
	})
	return report
}

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// TestAHandlerThatFails holds that a plan names handlers that fail, and objects that become not ready. Attempts come after random
// waits, so the time and the number of conditions differ.
func TestAHandlerThatFails(t *testing.T) {
	report := change(t, strings.Replace(sites, "selector: {matchLabels: {app:", "selector: {matchLabels: {site:", 1), Job{})
	if len(report.Failing) != 2 || !strings.HasPrefix(report.Failing[0].Message, "handler app is tried again: Deployment shop/blog:") {
		t.Errorf("failing are %+v", report.Failing)
	}
	if want := (Unready{"Site", "shop", "blog", "Ready=False"}); !slices.Contains(report.Unready, want) {
		t.Errorf("not ready are %+v", report.Unready)
	}
}

// TestFormsOfAPlan holds the forms that programs and pull requests read.
func TestFormsOfAPlan(t *testing.T) {
	report := change(t, strings.Replace(sites, secret, "", 1), Job{})
	var markdown strings.Builder
	if err := Markdown(&markdown, report); err != nil {
		t.Fatal(err)
	}
	golden(t, "markdown.golden", markdown.String())
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "json.golden", string(text)+"\n")
}

// TestWorkloads holds what becomes of a changed Deployment.
func TestWorkloads(t *testing.T) {
	changed := strings.NewReplacer(
		`image: "${self.spec.image}"}]`, `image: "nginx:1.29"}]`,
		`{status: {image: "${self.spec.image}"}}`, `{status: {image: "${string(children.deployment.?status.?observedGeneration.orValue(0))}"}}`,
	).Replace(sites)
	for workloads, want := range map[Workloads]string{WorkloadsRollout: "2", WorkloadsAlive: "2", WorkloadsFrozen: "1"} {
		t.Run(string(workloads), func(t *testing.T) {
			report := change(t, changed, Job{Workloads: workloads})
			for _, c := range report.Changes {
				for _, f := range c.Fields {
					if f.Path == "status.image" && f.After != want {
						t.Errorf("the generation of Site %s is %v, want %s", c.Name, f.After, want)
					}
				}
				if c.Kind == "Pod" || c.Kind == "ReplicaSet" {
					t.Errorf("the plan has %s %s, which the operator does not write", c.Kind, c.Name)
				}
			}
			if report.Summary[Changed] < 4 {
				t.Errorf("the plan has %v", report.Summary)
			}
		})
	}
}

// TestAgainst holds that a plan has nothing that the configuration which works now would do as well.
func TestAgainst(t *testing.T) {
	before, functions := read(t, sites)
	after, _ := read(t, strings.Replace(sites, secret, secret+"          account: {apiVersion: v1, kind: ServiceAccount, metadata: {name: \"${self.metadata.name}\"}}\n", 1))
	synctest.Test(t, func(t *testing.T) {
		in := &Input{Operator: after, Against: before, Functions: functions, Objects: Objects{List: objectsOf(t, site)}}
		report, err := Make(Job{For: 10 * time.Minute, Workloads: WorkloadsRollout}, in)
		if err != nil {
			t.Fatal(err)
		}
		if report.Summary[Created] != 2 || report.Changes[len(report.Changes)-1].Kind != "ServiceAccount" {
			t.Errorf("the plan creates %d objects: %+v", report.Summary[Created], report.Changes)
		}
		if report.Rights == nil || !slices.Contains(report.Rights.Added, "create serviceaccounts") || len(report.Rights.Dropped) > 0 {
			t.Errorf("the rights that change are %+v", report.Rights)
		}
	})
}

// TestAnOperatorThatDoesNotRest holds that the time of a plan is bounded.
func TestAnOperatorThatDoesNotRest(t *testing.T) {
	changed := strings.Replace(sites, `      - id: status
        set: {status: {image: "${self.spec.image}"}}`, `      - id: status
        every: 30s
        set: {status: {image: "${string(now)}"}}`, 1)
	if report := change(t, changed, Job{}); report.Rested || report.After < 500 {
		t.Errorf("rested: %t, after %v seconds", report.Rested, report.After)
	}
}

// TestAPlanWarnsOfDeletionsThatALimitHolds holds that a plan says beforehand which deletions the operator would hold.
func TestAPlanWarnsOfDeletionsThatALimitHolds(t *testing.T) {
	const fan = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: sites}
settings: {limits: {deletions: {perMinute: 1}}}
resources:
  - resource: sites.v1.example.com
    schema: {kind: Site, spec: {names: "[]string"}}
    handlers:
      - {id: pages, apply: {page: {forEach: "${self.spec.names%s}", template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${item}"}}}}}
`
	names := make([]string, 40)
	for i := range names {
		names[i] = fmt.Sprint("page-", i)
	}
	object := fmt.Sprintf("{apiVersion: example.com/v1, kind: Site, metadata: {name: blog, namespace: shop}, spec: {names: [%s]}}", strings.Join(names, ", "))
	for filter, want := range map[string][]string{
		`.filter(n, n.endsWith("7"))`:  {"the operator deletes 36 of 40 ConfigMap objects, more than limits.deletions.share allows (30%): it would hold the deletions until operator release"},
		`.filter(n, !n.endsWith("7"))`: nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			before, _ := read(t, fmt.Sprintf(fan, ""))
			objects := populated(t, before, objectsOf(t, object))
			after, functions := read(t, fmt.Sprintf(fan, strings.ReplaceAll(filter, `"`, "'")))
			report, err := Make(Job{For: time.Hour, Workloads: WorkloadsRollout}, &Input{Operator: after, Functions: functions, Objects: Objects{List: objects}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(want, report.Warnings); diff != "" {
				t.Errorf("%s: warnings (-want +got):\n%s", filter, diff)
			}
		})
	}
}
