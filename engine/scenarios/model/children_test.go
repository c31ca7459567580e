// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// toy is a kind of child, with how it is kept. That stays as it is, whichever handler makes it.
type toy struct {
	name      string
	ownership dsl.Ownership
	onDelete  dsl.DeletePolicy
	// always: it is wanted also while the size is zero.
	always bool
}

// String writes it on a line.
func (y toy) String() string {
	return fmt.Sprintf("%s (%s, %s, always %v)", y.name, y.ownership, y.onDelete, y.always)
}

// far: it lies in another namespace than its owner.
func (y toy) namespace() string {
	if y.ownership == dsl.Labelled {
		return "far"
	}
	return "default"
}

func (y toy) wanted(size int64) bool { return y.always || size > 0 }

// maker is a handler that keeps toys.
type maker struct {
	id   string
	was  []string
	toys []toy
}

// workshop is a version of an operator.
type workshop []maker

// String writes it with a handler on each line.
func (w workshop) String() string {
	var lines []string
	for _, m := range w {
		lines = append(lines, fmt.Sprintf("\t%s was %v makes %v", m.id, m.was, m.toys))
	}
	return strings.Join(lines, "\n")
}

// makes returns the toys of all handlers.
func (w workshop) makes() (out []toy) {
	for _, m := range w {
		out = append(out, m.toys...)
	}
	return out
}

func newWorkshop(r *rand.Rand) (out workshop) {
	for i := range 1 + r.IntN(3) {
		m := maker{id: fmt.Sprint("m", i)}
		for j := range 1 + r.IntN(2) {
			m.toys = append(m.toys, newToy(r, fmt.Sprintf("t%d%d", i, j)))
		}
		out = append(out, m)
	}
	return out
}

func newToy(r *rand.Rand, name string) toy {
	return toy{
		name: name, ownership: pick(r, dsl.Owned, dsl.Labelled, dsl.Labelled),
		onDelete: pick(r, dsl.DeleteChild, dsl.DeleteChild, dsl.OrphanChild, dsl.RetainChild), always: r.IntN(2) == 0,
	}
}

// next is another version: a toy moves to another handler, is dropped, or is new, or a handler is renamed or goes.
func (w workshop) next(r *rand.Rand, version int) workshop {
	out := slices.Clone(w)
	for i := range out {
		out[i].toys = slices.Clone(out[i].toys)
	}
	i := r.IntN(len(out))
	switch r.IntN(5) {
	case 0:
		j := r.IntN(len(out))
		if len(out[i].toys) > 0 && i != j {
			out[j].toys = append(out[j].toys, out[i].toys[0])
			out[i].toys = out[i].toys[1:]
		}
	case 1:
		if len(out[i].toys) > 0 {
			out[i].toys = out[i].toys[1:]
		}
	case 2:
		out[i].toys = append(out[i].toys, newToy(r, fmt.Sprint("n", version)))
	case 3:
		out[i].was, out[i].id = append(slices.Clone(out[i].was), out[i].id), fmt.Sprint("w", version)
	case 4:
		if len(out) > 1 {
			out = slices.Delete(out, i, i+1)
		}
	}
	return out
}

// operator is the workshop as the engine runs it.
func (w workshop) operator() *dsl.Operator {
	op := dsl.New("op")
	op.Resource(scene.Foos, func(foo *dsl.Resource) {
		foo.Owns(scene.ConfigMaps)
		for _, m := range w {
			foo.OnReconcile(m.id, m.make, dsl.Was(m.was...), dsl.WithBackoff(time.Second, 10*time.Second))
		}
	})
	return op
}

// make keeps the toys as the object wants them.
func (m maker) make(ctx context.Context, r *dsl.Request) error {
	size, _ := at(r.Object.Object, "spec.size").(int64)
	kept := map[string]bool{}
	var failed error // one that was let go is somebody else's, which keeps the others from nothing
	for _, y := range m.toys {
		if !y.wanted(size) {
			continue
		}
		kept[y.name] = true
		_, err := r.Children.Apply(ctx, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"size": fmt.Sprint(size)},
			"metadata": map[string]any{"namespace": y.namespace(), "name": r.Object.GetName() + "-" + y.name},
		}, dsl.ChildSpec{Handler: m.id, Name: y.name, Ownership: y.ownership, OnDelete: y.onDelete})
		failed = errors.Join(failed, err)
	}
	all, err := r.Children.All()
	failed = errors.Join(failed, err)
	for _, c := range all {
		if c.Handler == m.id && !kept[c.Name] {
			failed = errors.Join(failed, r.Children.Remove(ctx, c))
		}
	}
	r.Patch.SetStatus(m.id, size)
	return failed
}

// operation is one thing that happens in a nursery, as data.
type operation struct {
	what     string
	object   int
	toy      string
	size     int64
	workshop workshop
}

// String writes it on a line.
func (d operation) String() string {
	out := fmt.Sprintf("\t%s object %d toy %s size %d", d.what, d.object, d.toy, d.size)
	if d.workshop != nil {
		out += "\n" + d.workshop.String()
	}
	return out
}

func newOperations(r *rand.Rand, w workshop) []operation {
	out, version := []operation{{what: "create", size: 1}}, w
	for i := range 6 + r.IntN(10) {
		d := operation{
			what: pick(r, "create", "edit", "edit", "edit", "delete", "delete", "flip", "flip and fail", "remove", "change", "lose", "lose and delete", "fail", "blind", "blind and delete",
				"restart", "kill", "upgrade", "upgrade", "upgrade and delete", "roll back", "wait", "rest", "rest"),
			object: r.IntN(3), size: int64(r.IntN(3)),
		}
		if toys := version.makes(); len(toys) > 0 {
			d.toy = toys[r.IntN(len(toys))].name
		}
		switch d.what {
		case "upgrade", "upgrade and delete":
			version = version.next(r, i)
			d.workshop = version
		case "roll back":
			version = w
			d.workshop = version
		}
		out = append(out, d)
	}
	return append(out, operation{what: "rest"}, operation{what: "restart"}, operation{what: "rest"})
}

// keepsake is what is known of one toy of one object.
type keepsake struct {
	toy   toy
	owner types.UID
	// uid is that of the last rest, empty where there was none. Touched: a person has deleted it since. Unwanted: it was not
	// wanted for a while.
	uid               types.UID
	touched, unwanted bool
}

// nursery is one run of operations, and what the reference knows of it.
type nursery struct {
	*kit.Cluster
	process  *kit.Process
	workshop workshop
	// names are those of the objects; the last of each number may be there.
	names  [3]string
	made   int
	toys   map[string]*keepsake // by the name of the ConfigMap
	faults []string
}

// raise plays operations, and returns what was wrong.
func raise(t *testing.T, w workshop, operations []operation) (faults []string) {
	t.Helper()
	kit.Run(t, func(_ *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		c.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: far}}`)
		n := &nursery{Cluster: c, workshop: w, toys: map[string]*keepsake{}}
		n.launch()
		for _, d := range operations {
			n.play(d)
			n.Settle()
			n.look()
			if len(n.faults) > 0 {
				break
			}
		}
		faults = n.faults
	})
	return faults
}

func (n *nursery) launch() {
	n.process = n.Start(n.workshop.operator(), func(s *engine.Settings) { s.Log = logr.Discard() })
}

// play lets one operation happen.
func (n *nursery) play(d operation) {
	switch d.what {
	case "create":
		if n.object(d) == nil {
			n.made++
			n.names[d.object] = fmt.Sprintf("o%d", n.made)
			n.Create(fmt.Sprintf(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: %s}, spec: {size: %d}}`, n.names[d.object], d.size))
		}
	case "edit", "delete":
		n.do(d)
	case "wait":
		n.Advance(5 * time.Second)
	case "rest":
		n.rest()
	case "restart", "upgrade", "roll back", "upgrade and delete", "kill":
		n.replace(d)
	case "lose", "lose and delete", "fail", "blind", "blind and delete":
		n.suffer(d)
	default:
		n.touch(d)
	}
}

// object is what a operation is about, nil where it is not there, or is on its way out.
func (n *nursery) object(d operation) *unstructured.Unstructured {
	if n.names[d.object] == "" {
		return nil
	}
	o := n.Get(scene.Foos, "default", n.names[d.object])
	if o == nil || o.GetDeletionTimestamp() != nil {
		return nil
	}
	return o
}

// do changes an object, or deletes it.
func (n *nursery) do(d operation) {
	switch o := n.object(d); {
	case o == nil:
	case d.what == "delete":
		n.Delete(scene.Foos, "default", o.GetName())
	default:
		n.Update(scene.Foos, "default", o.GetName(), edit{"spec.size", d.size}.make)
	}
}

// replace ends the process and begins another one, of another version perhaps.
func (n *nursery) replace(d operation) {
	if d.what == "upgrade and delete" {
		if o := n.object(d); o != nil {
			n.Update(scene.Foos, "default", o.GetName(), func(o *unstructured.Unstructured) { o.SetFinalizers(append(o.GetFinalizers(), "example.com/hold")) })
			n.Settle()
			n.Delete(scene.Foos, "default", o.GetName())
			defer func() {
				n.Advance(time.Minute)
				if n.Get(scene.Foos, "default", o.GetName()) != nil {
					n.Update(scene.Foos, "default", o.GetName(), func(o *unstructured.Unstructured) {
						o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == "example.com/hold" }))
					})
				}
			}()
		}
	}
	if d.what == "kill" {
		n.process.Kill()
	} else if err := n.process.Stop(); err != nil {
		n.fault("stopping: %v", err)
	}
	if d.workshop != nil {
		n.workshop = d.workshop
	}
	n.launch()
}

// suffer makes a change while something is wrong with the server.
func (n *nursery) suffer(d operation) {
	switch d.what {
	case "lose", "lose and delete":
		n.HoldWatches(scene.ConfigMaps)
		n.LoseNext("patch", scene.ConfigMaps)
		n.do(operation{what: "edit", object: d.object, size: d.size})
		n.Settle()
		if d.what == "lose and delete" {
			n.do(operation{what: "delete", object: d.object})
		}
		n.Advance(5 * time.Second)
		n.ReleaseWatches(scene.ConfigMaps)
	case "fail":
		end := []func() int{n.FailWhile("patch", scene.Foos, internal), n.FailWhile("patch", scene.Foos+"/status", internal)}
		n.do(operation{what: "edit", object: d.object, size: d.size})
		n.Advance(time.Second)
		for _, each := range end {
			each()
		}
	case "blind", "blind and delete":
		end := n.FailWhile("watch", scene.ConfigMaps, kit.ErrRefused)
		n.CutWatches(scene.ConfigMaps)
		n.do(operation{what: "edit", object: d.object, size: d.size})
		n.Advance(40 * time.Second)
		if d.what == "blind and delete" {
			n.do(operation{what: "delete", object: d.object})
			n.Advance(40 * time.Second)
		}
		end()
	}
}

var internal = apierrors.NewInternalError(scene.ErrAgain)

// touch is what a person does to a child.
func (n *nursery) touch(d operation) {
	o := n.object(d)
	if o == nil {
		return
	}
	for _, namespace := range []string{"default", "far"} {
		name := o.GetName() + "-" + d.toy
		child := n.Get(scene.ConfigMaps, namespace, name)
		if child == nil || child.GetDeletionTimestamp() != nil {
			continue
		}
		switch d.what {
		case "remove":
			if k := n.toys[name]; k != nil {
				k.touched = true
			}
			n.Delete(scene.ConfigMaps, namespace, name)
		case "change":
			n.Update(scene.ConfigMaps, namespace, name, edit{"data.size", "many"}.make)
		case "flip", "flip and fail":
			labels := child.GetLabels()
			n.Update(scene.ConfigMaps, namespace, name, func(o *unstructured.Unstructured) { o.SetLabels(nil) })
			if d.what == "flip and fail" {
				n.FailNext("patch", scene.Foos+"/status", internal)
				n.FailNext("patch", scene.Foos, internal)
			}
			n.Advance(time.Second)
			if n.Get(scene.ConfigMaps, namespace, name) != nil {
				n.Update(scene.ConfigMaps, namespace, name, func(o *unstructured.Unstructured) { o.SetLabels(labels) })
			}
		}
	}
}
