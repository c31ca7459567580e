// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foos.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Foo, plural: foos, singular: foo, listKind: FooList}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
    - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

const objects = 5

// scene is an API server in memory with objects that are stored as v1, and a CRD that stores v2 now.
type scene struct {
	t     *testing.T
	admin dynamic.Interface
	// mine is the client of the migration. Each request of it goes through before first.
	mine   dynamic.Interface
	before func(server.Request) error
}

func begin(t *testing.T) *scene {
	t.Helper()
	all := server.New(complete.Settings()).Admin()
	s := &scene{t: t, admin: client(t, all), before: func(server.Request) error { return nil }}
	s.mine = client(t, all.Through(func(q server.Request) error { return s.before(q) }, nil))
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(definition), &crd.Object); err != nil {
		t.Fatal(err)
	}
	if _, err := s.admin.Resource(crds).Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range objects {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"name": fmt.Sprint("f", i)}}}
		if _, err := s.foos().Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.store("v2")
	return s
}

func client(t *testing.T, through *server.Client) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(&rest.Config{Host: "http://memory", Transport: through, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *scene) foos() dynamic.ResourceInterface {
	return s.admin.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}).Namespace("default")
}

// store has the CRD store another version.
func (s *scene) store(version string) {
	s.t.Helper()
	crd, err := s.admin.Resource(crds).Get(s.t.Context(), "foos.example.com", metav1.GetOptions{})
	if err == nil {
		for _, v := range crd.Object["spec"].(map[string]any)["versions"].([]any) {
			v.(map[string]any)["storage"] = v.(map[string]any)["name"] == version
		}
		_, err = s.admin.Resource(crds).Update(s.t.Context(), crd, metav1.UpdateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// stored returns status.storedVersions.
func (s *scene) stored() string {
	s.t.Helper()
	crd, err := s.admin.Resource(crds).Get(s.t.Context(), "foos.example.com", metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	return strings.Join(stored, " ")
}

// migrate migrates all objects, and returns the progress and how it ended.
func (s *scene) migrate(ctx context.Context) (Progress, error) {
	s.t.Helper()
	m, err := New(ctx, s.mine, "foos.example.com", 2)
	if err != nil {
		return Progress{}, err
	}
	for _, err := range m.Pages(ctx) {
		if err != nil {
			return m.Done(), err
		}
	}
	return m.Done(), m.Finish(ctx)
}

// once returns a function that runs once, before the first request of a verb for a name.
func once(verb, name string, do func() error) func(server.Request) error {
	done := false
	return func(q server.Request) error {
		if done || q.Verb != verb || q.Resource.Resource != "foos" || name != "" && q.Name != name {
			return nil
		}
		done = true
		return do()
	}
}

// TestAMigrationAmongOthers follows a migration through what others do at the same time.
func TestAMigrationAmongOthers(t *testing.T) {
	foos := schema.GroupResource{Group: "example.com", Resource: "foos"}
	for name, tt := range map[string]struct {
		before  func(*scene) func(server.Request) error
		written int
		gone    int
		failed  int
		want    string // in the error
		stored  string
	}{
		"nobody else writes": {func(s *scene) func(server.Request) error { return s.before }, objects, 0, 0, "", "v2"},
		"somebody changes an object, whose change stays": {func(s *scene) func(server.Request) error {
			return once("update", "f1", func() error { return s.label("f1") })
		}, objects, 0, 0, "", "v2"},
		"somebody deletes an object": {func(s *scene) func(server.Request) error {
			return once("update", "f1", func() error { return s.foos().Delete(s.t.Context(), "f1", metav1.DeleteOptions{}) })
		}, objects - 1, 1, 0, "", "v2"},
		"an object is refused, so the old version stays": {func(s *scene) func(server.Request) error {
			return once("update", "f1", func() error {
				return apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Foo"}, "f1", nil)
			})
		}, objects - 1, 0, 1, "1 objects could not be written, so v1 stays in status.storedVersions", "v1 v2"},
		"the account may not update, which ends it": {func(s *scene) func(server.Request) error {
			return once("update", "f1", func() error { return apierrors.NewForbidden(foos, "f1", errors.New("no role")) })
		}, 1, 0, 0, "writing default/f1: foos.example.com \"f1\" is forbidden: no role (operator migrate needs: ", "v1 v2"},
		"the API server forgets where a list goes on": {func(s *scene) func(server.Request) error {
			lists := 0
			return func(q server.Request) error {
				if q.Verb != "list" || q.Resource.Resource != "foos" {
					return nil
				}
				if lists++; lists == 2 {
					return apierrors.NewResourceExpired("The provided continue parameter is too old")
				}
				return nil
			}
		}, 2, 0, 0, "listing foos.example.com: The provided continue parameter is too old", "v1 v2"},
		"the stored version changes back": {func(s *scene) func(server.Request) error {
			return once("update", "f4", func() error { s.store("v1"); return nil })
		}, objects, 0, 0, "the stored version is v1 now; migrate again", "v1 v2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t)
			s.before = tt.before(s)
			done, err := s.migrate(t.Context())
			if (err == nil) != (tt.want == "") || !strings.Contains(fmt.Sprint(err), tt.want) {
				t.Errorf("it ended with %v, want %q", err, tt.want)
			}
			if done.Written != tt.written || done.Gone != tt.gone || len(done.Failed) != tt.failed {
				t.Errorf("the progress is %+v", done)
			}
			if got := s.stored(); got != tt.stored {
				t.Errorf("objects may be stored as %s, want %s", got, tt.stored)
			}
			if strings.Contains(name, "stays") && strings.Contains(name, "change") {
				o, err := s.foos().Get(t.Context(), "f1", metav1.GetOptions{})
				if err != nil || !cmp.Equal(o.GetLabels(), map[string]string{"theirs": "x"}) {
					t.Errorf("the change is lost: %v (%v)", o, err)
				}
			}
		})
	}
}

func (s *scene) label(name string) error {
	_, err := s.foos().Patch(s.t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"labels":{"theirs":"x"}}}`), metav1.PatchOptions{})
	return err
}

// TestAMigrationThatWasInterruptedRunsAgain holds that a second run ends what the first one has begun.
func TestAMigrationThatWasInterruptedRunsAgain(t *testing.T) {
	s := begin(t)
	ctx, interrupt := context.WithCancel(t.Context())
	s.before = once("update", "f2", func() error { interrupt(); return nil })
	if _, err := s.migrate(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if got := s.stored(); got != "v1 v2" {
		t.Errorf("objects may be stored as %s", got)
	}
	if done, err := s.migrate(t.Context()); err != nil || done.Written != objects {
		t.Errorf("the second run ended with %+v, %v", done, err)
	}
	if got := s.stored(); got != "v2" {
		t.Errorf("after the second run objects may be stored as %s", got)
	}
}
