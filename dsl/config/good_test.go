// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// operators compares operators; of code, only whether it is there.
var operators = cmp.Options{
	cmpopts.IgnoreTypes([]shape.Check{}),
	cmpopts.IgnoreFields(dsl.Operator{}, "Placed", "Files", "Digest"), // the warnings of validate and a test of its own hold them
	cmpopts.IgnoreFields(dsl.KnownReads{}, "Values", "Complete"),      // a test of their own holds them
	// A test of package handlers holds the explanations, which Go code has in another form.
	cmpopts.IgnoreFields(dsl.Handler{}, "whens"),
	cmpopts.IgnoreFields(dsl.Known{}, "ExplainWhen", "ExplainCode"),
	cmpopts.IgnoreFields(dsl.State{}, "ExplainCode"),
	cmpopts.IgnoreFields(dsl.Transition{}, "ExplainWhen"),
	cmp.AllowUnexported(dsl.Operator{}, dsl.Resource{}, dsl.Handler{}),
	cmp.Comparer(func(a, b dsl.Func) bool { return (a == nil) == (b == nil) }),
	cmp.Comparer(func(a, b dsl.Predicate) bool { return (a == nil) == (b == nil) }),
	cmp.Comparer(func(a, b error) bool { return a == nil && b == nil }),
}

func load(t *testing.T, name string) *dsl.Operator {
	t.Helper()
	op, err := config.Load([]string{filepath.Join("testdata/good", name)}, registry(t))
	if err != nil {
		t.Fatal(err)
	}
	return op
}

func TestEveryGoodConfigurationLoads(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no good configurations (%v)", err)
	}
	for _, file := range files {
		op := load(t, filepath.Base(file))
		if err := op.Validate(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestTheSameOperatorInYAMLAndInGo(t *testing.T) {
	want := dsl.New("foo")
	want.Scope.Namespaces = []string{"team-*", "!team-old"}
	want.Settings.LeaderElection.Mode = dsl.LeaderLease
	want.Resource("foos.v1alpha1.samplecontroller.k8s.io", func(foo *dsl.Resource) {
		foo.Resync = 10 * time.Minute
		foo.Workers = 4
		foo.Cache = dsl.CacheCompact
		foo.LabelSelector = "tier=gold"
		foo.Owns("deployments.v1.apps")
		always := func(*dsl.Subject) (bool, error) { return true, nil }
		foo.OnReconcile("deployment", nothing, dsl.When(always), dsl.Retries(10), dsl.Timeout(30*time.Second),
			described("call: demo.Run"), reading(dsl.KnownReads{Paths: []dsl.Path{{"spec", "replicas"}}}))
		foo.OnField("spec.replicas", "announce", nothing, described("call: foo.Announce"))
		foo.OnResync("heartbeat", nothing, described("call: foo.Beat"))
	})
	if diff := cmp.Diff(want, load(t, "foo.yaml"), operators); diff != "" {
		t.Errorf("operator (-want +got):\n%s", diff)
	}
}

func TestEveryFieldArrives(t *testing.T) {
	want := dsl.New("everything")
	want.Domain = "example.com"
	want.Scope = dsl.Scope{Namespaces: []string{"default", "team-[a-c]?", "!*-old"}, NamespaceSelector: "!paused,tenant=gold"}
	want.Settings = dsl.Settings{
		LeaderElection: dsl.LeaderElection{
			Mode: dsl.LeaderLease, Name: "everything-lock", Namespace: "system",
			LeaseDuration: 90 * time.Second, RenewDeadline: time.Minute, RetryPeriod: 5 * time.Second,
		},
		GracePeriod: 25 * time.Second, QPS: 50.5, Burst: 100, History: new(int64(4 << 20)),
	}
	want.OnStartup("migrate", nothing, dsl.Retries(3), dsl.WithBackoff(2*time.Second, time.Minute), dsl.Timeout(10*time.Second),
		dsl.Deadline(5*time.Minute), described("call: foo.Announce"))
	want.OnStartup("hello", nothing, dsl.Errors(dsl.ErrorsIgnore), described("note"))
	want.OnCleanup("bye", nothing, dsl.Needs("get", "secrets.v1"), described("call: demo.Run"))
	want.Resource("foos.v1.example.com", func(foo *dsl.Resource) {
		foo.Resync, foo.Workers, foo.Cache = time.Hour, 8, dsl.CacheCompact
		foo.KeepAt = "testdata/good/everything.yaml:28:11"
		foo.Keep = []dsl.Path{{"spec"}, {"metadata", "labels", "app.kubernetes.io/name"}, {"status", "phase"}}
		foo.LabelSelector = "empty=,env in (2024,prod),!old,tier=gold"
		foo.FieldSelector = "status.phase=Running,metadata.name!=x"
		foo.Owns("deployments.v1.apps", "configmaps")
		foo.On([]dsl.Cause{dsl.Reconcile, dsl.Delete}, "first", nothing,
			dsl.When(func(*dsl.Subject) (bool, error) { return true, nil }), dsl.Field("spec.image"),
			dsl.Label("tier", "gold"), dsl.LabelExists("app"), dsl.LabelAbsent("legacy"), dsl.Label("date", "2024-01-01"),
			dsl.Annotation("example.com/note", "any text, really"),
			dsl.Retries(0), dsl.WithBackoff(2*time.Second, time.Minute), dsl.Timeout(90*time.Minute),
			dsl.Deadline(2*time.Hour), dsl.Errors(dsl.ErrorsIgnore),
			dsl.Release(), described("call: foo.Announce"), reading(dsl.KnownReads{Paths: []dsl.Path{
				{"metadata", "labels", "tier"}, {"metadata", "labels", "app"}, {"metadata", "labels", "legacy"}, {"metadata", "labels", "date"},
				{"metadata", "annotations", "example.com/note"}, {"spec", "paused"}, {"spec", "paused"},
			}, Parents: []dsl.Path{{"spec"}}}))
		foo.OnDelete("second", nothing, dsl.After("first"), dsl.NoFinalizer(), dsl.NoOld(), described("note"),
			dsl.Needs("patch", "self/status"),
			dsl.WithNeeds(dsl.Need{
				Verbs: []string{"get", "list"}, Resource: dsl.ResourceName{Resource: "secrets", Version: "v1"}, Names: []string{"a", "b"}, Namespace: "other",
			}))
	})
	want.Resource("secrets.v1", func(r *dsl.Resource) {
		r.Cache, r.FieldSelector = dsl.CacheMetadata, "type=Opaque"
		r.On([]dsl.Cause{dsl.Create, dsl.Update}, "look", nothing, dsl.Field("metadata.annotations"), described("call: demo.Run"))
	})
	want.Resource("bars.example.com", func(r *dsl.Resource) {
		r.Cache = dsl.CacheLive
		r.OnResume("back", nothing, dsl.Deleted(), described("call: demo.Run"))
		r.OnUpdate("look", nothing, dsl.Field("spec"), dsl.NoOld(), described("call: demo.Run"))
	})
	if diff := cmp.Diff(want, load(t, "everything.yaml"), operators); diff != "" {
		t.Errorf("operator (-want +got):\n%s", diff)
	}
}

func TestMergedKeysGiveWayToTheMapsOwnAndTheFirstSourceWins(t *testing.T) {
	var got []string
	for _, h := range load(t, "anchors.yaml").Handlers() {
		got = append(got, h.ID+" "+h.Timeout.String()+" "+string(h.Causes[1])+" "+strings.Repeat("r", h.Retries))
	}
	want := []string{"first 10s update rrr", "second 10s update rrrrr", "third 20s update rrr"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("handlers (-want +got):\n%s", diff)
	}
}

// TestAnOperatorKnowsItsFiles holds that the digest of a configuration depends on the texts of the files with parts of the operator,
// and neither on their folder nor on others beside them, so that a running operator's can be compared with files at hand.
func TestAnOperatorKnowsItsFiles(t *testing.T) {
	const first = "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: foo}\nresources:\n- {resource: foos.v1.example.com, handlers: [{id: a, causes: [create], call: demo.Run}]}\n"
	load := func(files map[string]string) *dsl.Operator {
		t.Helper()
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		op, err := config.Load([]string{dir}, registry(t))
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range op.Files {
			op.Files[i] = filepath.Base(name)
		}
		return op
	}
	second := strings.ReplaceAll(first, "foos.v1", "bars.v1")
	op := load(map[string]string{"a.yaml": first, "b.yaml": second})
	if diff := cmp.Diff([]string{"a.yaml", "b.yaml"}, op.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: foos.example.com}\n"
	same := load(map[string]string{"a.yaml": first, "b.yaml": second, "crd.yaml": crd})
	if diff := cmp.Diff(op.Files, same.Files); diff != "" || same.Digest != op.Digest {
		t.Errorf("with a CRD beside them: digest %s, want %s, and files (-want +got):\n%s", same.Digest, op.Digest, diff)
	}
	if other := load(map[string]string{"a.yaml": first, "b.yaml": second + "\n"}); other.Digest == op.Digest {
		t.Error("a changed file has the same digest")
	}
}

func TestDocumentsOfOneNameMakeOneOperator(t *testing.T) {
	want := dsl.New("documents")
	want.Scope.Namespaces = []string{"default"}
	want.Settings.GracePeriod = 10 * time.Second
	for _, name := range []string{"foos.v1.example.com", "bars.v1.example.com"} {
		want.Resource(name, func(r *dsl.Resource) { r.OnCreate("a", nothing, described("call: demo.Run")) })
	}
	if diff := cmp.Diff(want, load(t, "documents.yaml"), operators); diff != "" {
		t.Errorf("operator (-want +got):\n%s", diff)
	}
}

func TestWhenSeesTheObjectAndTheParameters(t *testing.T) {
	var when dsl.Predicate
	for _, h := range load(t, "everything.yaml").Handlers() {
		if h.ID == "first" {
			when = h.When
		}
	}
	tests := map[string]struct {
		spec map[string]any
		want bool
	}{
		"the expression holds":         {map[string]any{"paused": true}, true},
		"the expression does not hold": {map[string]any{"paused": false}, false},
		"the field is not there":       {map[string]any{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &dsl.Subject{Object: &unstructured.Unstructured{Object: map[string]any{"spec": test.spec}}}
			if got, err := when(r); err != nil || got != test.want {
				t.Errorf("when() = %v, %v, want %v", got, err, test.want)
			}
		})
	}
	if _, err := when(&dsl.Subject{}); err == nil || err.Error() != "evaluating when: self.spec is not set" {
		t.Errorf("when() = %v, want an error that says what is missing", err)
	}
}

func TestTextOfManyShapesLoads(t *testing.T) {
	data, err := os.ReadFile("testdata/good/foo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"a byte order mark":        "\uFEFF" + string(data),
		"line ends of Windows":     strings.ReplaceAll(string(data), "\n", "\r\n"),
		"no end of the last line":  strings.TrimSpace(string(data)),
		"marks around the only":    "---\n" + string(data) + "...\n",
		"JSON, which is YAML too":  `{"apiVersion":"handwerk.dev/v1alpha1","kind":"Operator","metadata":{"name":"foo"},"resources":[{"resource":"pods","handlers":[{"id":"a","causes":["create"],"call":"demo.Run"}]}]}`,
		"a directive and document": "%YAML 1.1\n---\n" + string(data),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			op, err := config.Parse("foo.yaml", []byte(text), registry(t))
			if err != nil || op.Name != "foo" {
				t.Errorf("Parse() = %v, %v, want operator foo", op, err)
			}
		})
	}
}

func described(action string) dsl.Option { return func(h *dsl.Handler) { h.Known.Action = action } }

func reading(reads dsl.KnownReads) dsl.Option { return func(h *dsl.Handler) { h.Known.Reads = reads } }
