// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package growth_test

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

var corners = []corner{
	{"a change that all handlers look at", "handler", []int{10, 40}, []int{1, 10, 50, 100, 200}, false, changeSeenBy(func(int) string { return "size" })},
	{"a change that one of the handlers looks at", "handler", []int{10, 40}, []int{1, 10, 50, 100, 200}, false, changeSeenBy(oneSees)},
	{"children are made", "child", []int{10, 50}, []int{1, 10, 100, 500}, false, made((*ground).owner)},
	{"children change with their owner", "child", []int{10, 50}, []int{1, 10, 100, 500}, false, childrenChanged},
	{"each child is touched by a stranger", "touch", []int{10, 50}, []int{1, 10, 100, 500}, false, childrenTouched},
	{"an owner of children is found again", "child", []int{10, 50}, []int{1, 10, 100, 500}, false, found((*ground).owner)},
	{"one of the children is deleted by a stranger", "child", []int{10, 50}, []int{1, 10, 100, 500}, false, childDeleted},
	{"objects with a child each are made", "Foo", []int{10, 50}, []int{1, 10, 100, 1000}, false, made((*ground).objects)},
	{"the child of each object is deleted", "Foo", []int{20, 100}, []int{1, 10, 100, 1000}, false, objectsHealed},
	{"objects with a child each are found again", "Foo", []int{10, 50}, []int{1, 10, 100, 1000}, false, found((*ground).objects)},
	{"objects with a finalizer are deleted", "Foo", []int{50, 200}, []int{1, 10, 100, 1000}, false, objectsDeleted},
	{"a start in namespaces with a Foo each", "namespace", []int{5, 20}, []int{1, 10, 100, 1000}, true, namespacesFound},
	{"a change in each namespace", "change", []int{5, 20}, []int{1, 10, 100, 1000}, false, namespacesChanged},
	{"a start with resources of an object each", "resource", []int{5, 20}, []int{1, 10, 50, 200}, true, resourcesFound},
	{"a change of each resource", "change", []int{5, 20}, []int{1, 10, 50, 200}, false, resourcesChanged},
}

// changeSeenBy has a Foo with so many handlers, each of which looks at a field, and changes spec.size. What they set does not grow with
// them, for each gets a copy of the object.
func changeSeenBy(field func(handler int) string) func(*ground, int) job {
	return func(g *ground, n int) job {
		handlers := listed(n, func(i int) string {
			return fmt.Sprintf(`{id: h%d, set: {status: {f%d: "${self.spec.%s}"}}}`, i, i%10, field(i))
		})
		g.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		g.Create(scene.Web)
		g.launch(g.yaml(`{resource: foos.v1.example.com, handlers: [` + handlers + `]}`))
		changes := max(5, 500/n)
		return job{
			units: n * changes,
			run: func() {
				for i := range changes {
					g.resize(scene.Foos, "default", int64(i+2))
					g.Advance(time.Second) // or the engine would take them for a loop
				}
			},
			check: func() { g.wantStatus(scene.Foos, "default", "f0", int64(changes+1)) },
		}
	}
}

// oneSees are the fields of handlers of which the first one alone looks at the size.
func oneSees(handler int) string {
	if handler == 0 {
		return "size"
	}
	return "color"
}

// owner is a Foo with so many children.
func (g *ground) owner(n int) {
	g.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
	g.Create(scene.FooIn("default", "web", map[string]any{"size": n, "text": "a"}))
}

// keeper keeps the children of a Foo.
func (g *ground) keeper() *dsl.Operator {
	return g.yaml(`{resource: foos.v1.example.com, handlers: [{id: children, apply: {config: {forEach: "${lists.range(self.spec.size)}", limit: 1000, ` +
		`template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-${key}"}, data: {text: "${self.spec.text}"}}}}}]}`)
}

// made has the children of what there is made.
func made(prepare func(*ground, int)) func(*ground, int) job {
	return func(g *ground, n int) job {
		prepare(g, n)
		return job{units: n, run: func() { g.launch(g.keeper()) }, check: func() { g.wantChildren(n, "a") }}
	}
}

// found has a second process find what a first one has made.
func found(prepare func(*ground, int)) func(*ground, int) job {
	return func(g *ground, n int) job {
		prepare(g, n)
		g.launch(g.keeper())
		return job{units: n, run: func() { g.launch(g.keeper()) }, check: func() { g.wantChildren(n, "a") }}
	}
}

func childrenChanged(g *ground, n int) job {
	g.owner(n)
	g.launch(g.keeper())
	return job{
		units: n,
		run: func() {
			g.Update(scene.Foos, "default", "web", scene.SetField("b", "spec", "text"))
			g.rest()
		},
		check: func() { g.wantChildren(n, "b") },
	}
}

// childrenTouched lets somebody change of each child what the operator has not applied.
func childrenTouched(g *ground, n int) job {
	g.owner(n)
	g.launch(g.keeper())
	return job{
		units: n,
		run: func() {
			for i := range n {
				g.Update(scene.ConfigMaps, "default", fmt.Sprintf("web-%d", i), scene.SetField("b", "metadata", "annotations", "touched"))
				g.Advance(time.Second) // or the engine would take them for a loop
			}
		},
		check: func() { g.wantChildren(n, "a") },
	}
}

// childDeleted lets somebody delete a child a few times, which the operator makes again. It looks at all children of the owner then.
func childDeleted(g *ground, n int) job {
	const times = 20
	g.owner(n)
	g.launch(g.keeper())
	return job{
		units: n * times,
		run: func() {
			for range times {
				g.Delete(scene.ConfigMaps, "default", "web-0")
				g.rest()
			}
		},
		check: func() { g.wantChildren(n, "a") },
	}
}

// objects makes so many Foos.
func (g *ground) objects(n int) {
	g.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
	for i := range n {
		g.Create(scene.FooIn("default", object(i), map[string]any{"size": 1, "text": "a"}))
	}
}

// objectsHealed lets somebody delete the child of each object.
func objectsHealed(g *ground, n int) job {
	g.objects(n)
	g.launch(g.keeper())
	return job{
		units: n,
		run: func() {
			for i := range n {
				g.Delete(scene.ConfigMaps, "default", object(i)+"-0")
			}
			g.rest()
		},
		check: func() { g.wantChildren(n, "a") },
	}
}

// objectsDeleted lets somebody delete each object, which goes when the operator has taken its finalizer off.
func objectsDeleted(g *ground, n int) job {
	g.objects(n)
	g.launch(g.yaml(`{resource: foos.v1.example.com, handlers: [{id: farewell, causes: [delete], log: {message: gone}}]}`))
	return job{
		units: n,
		run: func() {
			for i := range n {
				g.Delete(scene.Foos, "default", object(i))
			}
			g.rest()
		},
		check: func() {
			if left := len(g.List(scene.Foos, "default")); left > 0 {
				g.t.Errorf("%d objects are left", left)
			}
		},
	}
}

// namespaces makes so many, with a Foo in each, and returns an operator of these.
func (g *ground) namespaces(n int) *dsl.Operator {
	g.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
	op := g.yaml(copies(scene.Foos))
	for i := range n {
		op.Scope.Namespaces = append(op.Scope.Namespaces, space(i))
		g.Create(scene.FooIn(space(i), "web", map[string]any{"size": 1}))
	}
	return op
}

func namespacesFound(g *ground, n int) job {
	op := g.namespaces(n)
	return job{units: n, run: func() { g.launch(op) }, check: func() { g.wantStatus(scene.Foos, space(n-1), "size", 1) }}
}

func namespacesChanged(g *ground, n int) job {
	g.launch(g.namespaces(n))
	return job{
		units: n,
		run: func() {
			for i := range n {
				g.resize(scene.Foos, space(i), 2)
			}
		},
		check: func() { g.wantStatus(scene.Foos, space(n-1), "size", 2) },
	}
}

// resources makes so many, with an object each, and returns an operator of these.
func (g *ground) resources(n int) *dsl.Operator {
	for i := range n {
		g.Serve(kit.Resource{Name: kind(i), Kind: fmt.Sprintf("Kind%d", i)})
		g.Create(map[string]any{
			"apiVersion": "example.com/v1", "kind": fmt.Sprintf("Kind%d", i),
			"metadata": map[string]any{"name": "web"}, "spec": map[string]any{"size": 1},
		})
	}
	return g.yaml(listed(n, func(i int) string { return copies(kind(i)) }))
}

func resourcesFound(g *ground, n int) job {
	op := g.resources(n)
	return job{units: n, run: func() { g.launch(op) }, check: func() { g.wantStatus(kind(n-1), "default", "size", 1) }}
}

func resourcesChanged(g *ground, n int) job {
	g.launch(g.resources(n))
	return job{
		units: n,
		run: func() {
			for i := range n {
				g.resize(kind(i), "default", 2)
			}
		},
		check: func() { g.wantStatus(kind(n-1), "default", "size", 2) },
	}
}

func object(i int) string { return fmt.Sprintf("web-%d", i) }

func space(i int) string { return fmt.Sprintf("team-%d", i) }

func kind(i int) string { return fmt.Sprintf("kind%ds.v1.example.com", i) }

// copies is a resource whose objects say in their status what their spec says.
func copies(resource string) string {
	return `{resource: ` + resource + `, handlers: [{id: size, set: {status: {size: "${self.spec.size}"}}}]}`
}

// listed are elements of a list.
func listed(n int, element func(i int) string) string {
	var out []string
	for i := range n {
		out = append(out, element(i))
	}
	return strings.Join(out, ", ")
}

func (g *ground) yaml(resources string) *dsl.Operator {
	g.t.Helper()
	op, err := scene.ParseYAML(resources)
	if err != nil {
		g.t.Fatal(err)
	}
	op.Settings.Limits.Deletions = dsl.DeletionLimits{PerMinute: dsl.Unlimited, Share: dsl.Unlimited} // the cost of many is what counts
	return op
}

// resize changes spec.size of an object named web, and waits for what comes of it.
func (g *ground) resize(resource, namespace string, size int64) {
	g.Update(resource, namespace, "web", scene.SetField(size, "spec", "size"))
	g.Settle()
}

// wantStatus fails the test unless a field of the status of an object named web has this value.
func (g *ground) wantStatus(resource, namespace, field string, want int64) {
	g.t.Helper()
	if got := scene.ValueAt(g.Get(resource, namespace, "web"), "status."+field); got != want {
		g.t.Errorf("status.%s of %s in %s is %v, want %d", field, resource, namespace, got, want)
	}
}

// wantChildren fails the test unless there are so many children with this text.
func (g *ground) wantChildren(n int, text string) {
	g.t.Helper()
	found := 0
	for _, o := range g.List(scene.ConfigMaps, "default") {
		if data, _, _ := unstructured.NestedString(o.Object, "data", "text"); data == text {
			found++
		}
	}
	if found != n {
		g.t.Errorf("%d children say %q, want %d", found, text, n)
	}
}
