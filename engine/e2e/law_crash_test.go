// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// mortalVariable makes this test binary run the operator that tests kill, in the namespace it names.
const mortalVariable = "E2E_MORTAL_NAMESPACE"

// mortal is an operator with all that can be left half done: a finalizer, two children, status, an
// annotation, progress, and a delete handler that deletes a child.
func mortal(ns string) *dsl.Operator {
	op := dsl.New("law")
	op.Scope.Namespaces = []string{ns}
	op.Resource(works, func(r *dsl.Resource) {
		r.Owns(configMaps)
		r.On(changes, "make", func(ctx context.Context, r *dsl.Request) error {
			for _, suffix := range []string{"-one", "-two"} {
				if _, err := r.Children.Apply(ctx, configMap(r.Object.GetName()+suffix, spec(r.Object, "value"))); err != nil {
					return err
				}
			}
			return nil
		}, dsl.Field("spec"))
		r.On(changes, "note", func(_ context.Context, r *dsl.Request) error {
			r.Patch.SetStatus("value", spec(r.Object, "value"))
			r.Patch.Annotate("e2e.example.com/noted", spec(r.Object, "value"))
			return nil
		}, dsl.Field("spec"))
		r.OnDelete("farewell", func(ctx context.Context, r *dsl.Request) error {
			return r.Children.Delete(ctx, configMaps, r.Object.GetName()+"-one")
		})
	})
	return op
}

// runMortal is the main function of the process that tests kill.
func runMortal(op *dsl.Operator) (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err == nil {
		log := funcr.New(func(_, line string) { fmt.Println(line) }, funcr.Options{Verbosity: 1})
		var e *engine.Engine
		if e, err = engine.New(op, engine.Settings{Config: config, Log: log}); err == nil {
			err = e.Run(ctx)
		}
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// life is what an object goes through under the mortal operator, and what came of it.
type life struct {
	// writes is how many the operator's first process sent.
	writes int
	// states are the objects after each step: the work and its children, without what differs
	// from run to run.
	states []map[string]any
	// counts are the creations and deletions that the API server granted the operator.
	counts map[string]int
}

// live leads a work through its life. The crash, if any, is set before, and answered by a restart.
func live(t *testing.T, crash func(p *cluster.Proxy, kill func()) <-chan struct{}) life {
	t.Helper()
	s := newStage(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	launch := cluster.Launch{Program: program, Config: s.proxy.Config(), Env: []string{mortalVariable + "=" + s.ns}}
	first := plane.Operator(t, launch)
	crashed := crash(s.proxy, first.Kill)
	follow := func(what string, met func() bool) {
		t.Helper()
		waitFor(t, what, func() bool {
			select {
			case <-crashed:
				crashed = nil
				launch.Config = s.user.Config()
				plane.Operator(t, launch)
			default:
			}
			return met()
		})
	}
	var out life
	mark := plane.Mark(t)
	lived := func(value string) func() bool {
		return func() bool {
			w, one, two := s.works.Get(t, "w"), s.maps.Get(t, "w-one"), s.maps.Get(t, "w-two")
			if w == nil || one == nil || two == nil || !settled(w) || status(w, "value") != value || !handledWith(w, value) {
				return false
			}
			out.states = append(out.states, plain(w), plain(one), plain(two))
			return true
		}
	}
	s.works.Create(t, work("w", "a"))
	follow("the creation to be handled", lived("a"))
	s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
	follow("the update to be handled", lived("b"))
	s.works.Delete(t, "w")
	follow("the end", func() bool { return s.works.Get(t, "w") == nil })
	out.writes = len(s.proxy.Requests(cluster.On("write", "*")))
	out.counts = map[string]int{}
	for _, w := range plane.Writes(t, s.user.Name, mark) {
		switch {
		case w.Code == 201:
			out.counts["created "+w.Resource+" "+w.Name]++
		case w.Verb == "delete" && w.Code == 200:
			out.counts["deleted "+w.Resource+" "+w.Name]++
		}
	}
	return out
}

// handledWith reports whether the base that is stored has the value.
func handledWith(w *unstructured.Unstructured, value string) bool {
	return strings.Contains(w.GetAnnotations()["law.handwerk.dev/state"], fmt.Sprintf(`"value":%q`, value))
}

// plain is an object without what differs from run to run.
func plain(o *unstructured.Unstructured) map[string]any {
	tree := o.DeepCopy().Object
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace"} {
		unstructured.RemoveNestedField(tree, "metadata", field)
	}
	if book, found := o.GetAnnotations()["law.handwerk.dev/state"]; found {
		own := strings.ReplaceAll(book, string(o.GetUID()), "its uid")
		_ = unstructured.SetNestedField(tree, own, "metadata", "annotations", "law.handwerk.dev/state")
	}
	if owners := o.GetOwnerReferences(); len(owners) > 0 {
		for i := range owners {
			owners[i].UID = ""
		}
		masked := &unstructured.Unstructured{Object: tree}
		masked.SetOwnerReferences(owners)
		notes := masked.GetAnnotations()
		notes["law.handwerk.dev/applied"] = "a digest of what has the owner's UID in it"
		masked.SetAnnotations(notes)
	}
	return tree
}

// TestCrashAtEachWrite kills the process after each write of a work's life, and before the first. Left
// out is the crash before each other write: all that outlives a process is what the API server holds,
// and that is the same as after the write before.
func TestCrashAtEachWrite(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	want := live(t, func(*cluster.Proxy, func()) <-chan struct{} { return never })
	if want.writes < 10 {
		t.Fatalf("the undisturbed run has %d writes only", want.writes)
	}
	counts := map[string]int{"created configmaps w-one": 1, "created configmaps w-two": 1, "deleted configmaps w-one": 1}
	if diff := cmp.Diff(counts, want.counts); diff != "" {
		t.Fatalf("creations and deletions of the undisturbed run (-want +got):\n%s", diff)
	}
	for n := range want.writes + 1 {
		t.Run(fmt.Sprintf("after %d writes", n), func(t *testing.T) {
			t.Parallel()
			var fired <-chan struct{}
			got := live(t, func(p *cluster.Proxy, kill func()) <-chan struct{} {
				if n == 0 {
					fired = p.CrashBefore(1, kill)
				} else {
					fired = p.CrashAfter(n, kill)
				}
				return fired
			})
			if got.writes >= max(n, 1) {
				<-fired // of the last write, its effect is seen earlier
			} else if n <= 10 { // a conflict more or less makes the number differ
				t.Fatal("the process was never killed")
			}
			if diff := cmp.Diff(want.states, got.states); diff != "" {
				t.Errorf("states (-undisturbed +this):\n%s", diff)
			}
			if diff := cmp.Diff(want.counts, got.counts); diff != "" {
				t.Errorf("creations and deletions (-undisturbed +this):\n%s", diff)
			}
		})
	}
}

// TestRecordedSuccessIsNotRepeated: of two handlers one has succeeded when the process dies.
func TestRecordedSuccessIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	define := func(r *dsl.Resource) {
		r.On(changes, "done", s.Note("done", nil))
		r.On(changes, "open", s.Note("open", func(_ context.Context, r *dsl.Request) error {
			if r.Object.GetName() != "w" || spec(r.Object, "value") == "b" {
				return nil
			}
			return dsl.Temporary(errors.New("not yet"), time.Hour)
		}), dsl.Field("spec.value"))
	}
	restart := func(running *cluster.Running) *cluster.Running {
		s.proxy.Sever()
		if err := running.Crash(t); err != nil {
			t.Errorf("crashing: %v", err)
		}
		s.proxy.Restore()
		again := s.play(t, define)
		s.quiesce(t, "open")
		return again
	}
	running := s.play(t, define)
	s.works.Create(t, work("w", "a"))
	s.works.Await(t, "w", "its progress", func(o *unstructured.Unstructured) bool {
		return strings.Contains(o.GetAnnotations()["law.handwerk.dev/state"], `"open"`)
	})
	running = restart(running)
	if diff := cmp.Diff([]string{"done create a", "open create a"}, s.said("", "w")); diff != "" {
		t.Errorf("calls while one handler is open (-want +got):\n%s", diff)
	}
	s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
	s.works.Await(t, "w", "its base", settled)
	restart(running)
	want := []string{"done create a", "open create a", "done update b", "open create b"}
	if diff := cmp.Diff(want, s.said("", "w")); diff != "" {
		t.Errorf("calls in the end (-want +got):\n%s", diff)
	}
}
