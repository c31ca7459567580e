// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"context"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// Create creates an object and returns it; for several, the last one. The object is YAML text, which may have
// several documents, or any value that is an object in JSON. The namespace defaults to default, and is created if
// it does not exist. A status is written, too.
func (c *Cluster) Create(object any) *unstructured.Unstructured {
	c.t.Helper()
	var last *unstructured.Unstructured
	for _, o := range c.read(object) {
		last = c.create(o)
	}
	return last
}

// CreateFile creates the objects of a YAML file, such as a CRD, and returns the last one.
func (c *Cluster) CreateFile(path string) *unstructured.Unstructured {
	c.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.Create(string(text))
}

// Load stores an object unchanged, with its uid, generation, managed fields, deletion and status, like restoring
// etcd from a backup, and returns it. No object of its name may exist. It is for objects in the form of an earlier
// release of an operator.
func (c *Cluster) Load(object any) *unstructured.Unstructured {
	c.t.Helper()
	var last *unstructured.Unstructured
	for _, o := range c.read(object) {
		served := c.place(o)
		c.server.Load(served.GVR.GroupResource(), o)
		var err error
		last, err = c.reach(served, o.GetNamespace()).Get(c.ctx(), o.GetName(), metav1.GetOptions{})
		c.check(err)
	}
	return last
}

// Apply does a server-side apply with this field manager, and takes over conflicting fields.
func (c *Cluster) Apply(manager string, object any) *unstructured.Unstructured {
	c.t.Helper()
	var last *unstructured.Unstructured
	for _, o := range c.read(object) {
		served := c.place(o)
		var err error
		last, err = c.reach(served, o.GetNamespace()).Apply(c.ctx(), o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true})
		c.check(err)
	}
	return last
}

// Update reads an object, calls change and writes the result, to the status subresource too if the status was
// changed. It returns the resulting object.
func (c *Cluster) Update(resource, namespace, name string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	c.t.Helper()
	for {
		out, err := c.update(c.resource(resource), namespace, name, change)
		if apierrors.IsConflict(err) {
			continue // the operator wrote in between
		}
		c.check(err)
		return out
	}
}

// Delete deletes an object. Finalizers hold it, as usual.
func (c *Cluster) Delete(resource, namespace, name string) {
	c.t.Helper()
	c.check(c.reach(c.resource(resource), namespace).Delete(c.ctx(), name, metav1.DeleteOptions{}))
}

// Get returns an object, or nil.
func (c *Cluster) Get(resource, namespace, name string) *unstructured.Unstructured {
	c.t.Helper()
	o, err := c.reach(c.resource(resource), namespace).Get(c.ctx(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	c.check(err)
	return o
}

// List returns the objects of a resource in a namespace, sorted; an empty namespace means all.
func (c *Cluster) List(resource, namespace string) []*unstructured.Unstructured {
	c.t.Helper()
	list, err := c.reach(c.resource(resource), namespace).List(c.ctx(), metav1.ListOptions{})
	c.check(err)
	var out []*unstructured.Unstructured
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out
}

func (c *Cluster) create(o *unstructured.Unstructured) *unstructured.Unstructured {
	c.t.Helper()
	served := c.place(o)
	if ns := o.GetNamespace(); ns != "" && c.Get("namespaces.v1", "", ns) == nil {
		c.create(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": ns},
		}})
	}
	out, err := c.reach(served, o.GetNamespace()).Create(c.ctx(), o, metav1.CreateOptions{})
	c.check(err)
	status, found := o.Object["status"]
	if !found || !served.Status || served.Kind == "CustomResourceDefinition" {
		return out
	}
	out.Object["status"] = status
	out, err = c.reach(served, o.GetNamespace()).UpdateStatus(c.ctx(), out, metav1.UpdateOptions{})
	c.check(err)
	return out
}

func (c *Cluster) update(served server.Served, namespace, name string, change func(*unstructured.Unstructured)) (*unstructured.Unstructured, error) {
	reach := c.reach(served, namespace)
	old, err := reach.Get(c.ctx(), name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	next := old.DeepCopy()
	change(next)
	status, kept := next.Object["status"]
	restatus := served.Status && !reflect.DeepEqual(old.Object["status"], status)
	if restatus {
		next.Object["status"] = old.Object["status"]
	}
	out := old
	if !reflect.DeepEqual(old.Object, next.Object) {
		if out, err = reach.Update(c.ctx(), next, metav1.UpdateOptions{}); err != nil || !restatus {
			return out, err
		}
	}
	if !restatus {
		return out, nil
	}
	delete(out.Object, "status")
	if kept {
		out.Object["status"] = status
	}
	return reach.UpdateStatus(c.ctx(), out, metav1.UpdateOptions{})
}

// place finds an object's resource and sets the default namespace.
func (c *Cluster) place(o *unstructured.Unstructured) server.Served {
	c.t.Helper()
	served, found := c.server.LookupKind(o.GroupVersionKind())
	if !found {
		c.t.Fatalf("kind %s of %s is not served", o.GetKind(), o.GetAPIVersion())
	}
	if served.Namespaced && o.GetNamespace() == "" {
		o.SetNamespace("default")
	}
	return served
}

func (c *Cluster) reach(served server.Served, namespace string) dynamic.ResourceInterface {
	return c.client.Resource(served.GVR).Namespace(namespace)
}

func (c *Cluster) check(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// read returns the objects in a value.
func (c *Cluster) read(value any) []*unstructured.Unstructured {
	c.t.Helper()
	switch v := value.(type) {
	case string:
		return c.readYAML(v)
	case *unstructured.Unstructured:
		return []*unstructured.Unstructured{v.DeepCopy()}
	}
	decoded, err := plain.Value(value)
	c.check(err)
	tree, ok := decoded.(map[string]any)
	if !ok {
		c.t.Fatalf("%T is not an object", value)
	}
	o := &unstructured.Unstructured{Object: tree}
	unstructured.RemoveNestedField(tree, "metadata", "creationTimestamp") // typed values contain it, empty
	if typed, ok := value.(runtime.Object); ok && o.GetKind() == "" {
		kinds, _, err := scheme.Scheme.ObjectKinds(typed)
		c.check(err)
		o.SetGroupVersionKind(kinds[0])
	}
	return []*unstructured.Unstructured{o}
}

func (c *Cluster) readYAML(text string) []*unstructured.Unstructured {
	c.t.Helper()
	var out []*unstructured.Unstructured
	for document := range strings.SplitSeq("\n"+dedent(text), "\n---") {
		data, err := yaml.YAMLToJSON([]byte(document))
		c.check(err)
		if data = bytes.TrimSpace(data); slices.Equal(data, []byte("null")) {
			continue
		}
		o := &unstructured.Unstructured{}
		c.check(o.UnmarshalJSON(data))
		out = append(out, o)
	}
	return out
}

// dedent removes the common leading tabs: YAML has none, and Go code around it does.
func dedent(text string) string {
	least := math.MaxInt
	for line := range strings.Lines(text) {
		if rest := strings.TrimLeft(line, "\t"); strings.TrimSpace(rest) != "" {
			least = min(least, len(line)-len(rest))
		}
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		rest := strings.TrimLeft(line, "\t")
		out.WriteString(line[min(least, len(line)-len(rest)):])
	}
	return out.String()
}

// ctx returns a context that does not end with the test, because handlers may run while processes are stopped after
// it.
func (c *Cluster) ctx() context.Context { return context.WithoutCancel(c.t.Context()) }
