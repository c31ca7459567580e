// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	text "github.com/handwerk-dev/handwerk/dsl/source"
	"github.com/handwerk-dev/handwerk/dsl/words"
	"github.com/handwerk-dev/handwerk/sandbox/server"
)

// home is the namespace of objects that say none.
const home = "default"

// manager is the field manager of what cases apply.
const manager = "kubectl"

// place is where an object is.
type place struct {
	served          server.Served
	namespace, name string
}

// nameOf names an object as cases do.
func nameOf(resource, namespace, name string) string {
	resource, _, _ = strings.Cut(resource, ".")
	if namespace != "" && namespace != home {
		name = namespace + "/" + name
	}
	return resource + "/" + name
}

// String names the object as cases do.
func (p place) String() string { return nameOf(p.served.GVR.Resource, p.namespace, p.name) }

// resource finds a resource by a name that kubectl would take for it.
func (r *runner) resource(name string) (server.Served, error) {
	if found := r.server.Named(name); len(found) > 0 {
		return found[0], nil
	}
	var known []string
	for _, served := range r.server.All() {
		known = append(known, served.GVR.Resource)
	}
	hint := "neither Kubernetes nor a CRD beside the operator has it"
	if near, is := words.Nearest(name, known); is {
		hint = "did you mean " + near + "?"
	}
	return server.Served{}, fmt.Errorf("the cluster has no resource %s (%s)", name, hint)
}

// place finds the place of a name, as in foos/web or foos/other-namespace/web.
func (r *runner) place(name string) (place, error) {
	parts := strings.Split(name, "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return place{}, fmt.Errorf("want the name of an object as in deployments/web or deployments/other-namespace/web, found %q", name)
	}
	served, err := r.resource(parts[0])
	if err != nil {
		return place{}, err
	}
	p := place{served: served, name: parts[len(parts)-1]}
	switch {
	case served.Namespaced && len(parts) == 3:
		p.namespace = parts[1]
	case served.Namespaced:
		p.namespace = home
	case len(parts) == 3:
		return p, fmt.Errorf("%s have no namespace, and %q has one", parts[0], name)
	}
	return p, nil
}

func (r *runner) reach(p place) dynamic.ResourceInterface {
	return r.client.Resource(p.served.GVR).Namespace(p.namespace)
}

// get returns an object, or nil if it does not exist.
func (r *runner) get(p place) (*unstructured.Unstructured, error) {
	o, err := r.reach(p).Get(context.Background(), p.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no object is an answer
	}
	return o, err
}

// list returns all objects of a resource.
func (r *runner) list(served server.Served) ([]unstructured.Unstructured, error) {
	l, err := r.client.Resource(served.GVR).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return l.Items, nil
}

// isReady reports whether an object is ready, and why not.
func (r *runner) isReady(name string) (ready bool, why string) {
	p, err := r.place(name)
	if err != nil {
		return false, err.Error()
	}
	o, err := r.get(p)
	if err != nil {
		return false, err.Error()
	}
	if o == nil {
		return false, "it does not exist" + r.near(p)
	}
	answer, err := dsl.ReadinessOf(o)
	if err != nil {
		return false, err.Error()
	}
	return answer.Ready, answer.Message
}

// near names the objects that exist instead of one.
func (r *runner) near(p place) string {
	all, err := r.list(p.served)
	if err != nil || len(all) == 0 {
		return "; there are no " + p.served.GVR.Resource
	}
	var names []string
	for _, o := range all {
		names = append(names, nameOf(p.served.GVR.Resource, o.GetNamespace(), o.GetName()))
	}
	if one, is := words.Nearest(p.String(), names); is {
		return "; did you mean " + one + "?"
	}
	if len(names) > 8 {
		names = append(names[:8], "…")
	}
	return "; there are " + strings.Join(names, ", ")
}

// each does something with each object of a list.
func (r *runner) each(list objects, do func(*unstructured.Unstructured) error) error {
	for _, s := range list {
		all := r.file.objects[s.file]
		if s.object != nil {
			all = []*unstructured.Unstructured{{Object: s.object}}
		}
		for _, o := range all {
			err := do(o.DeepCopy())
			if err == nil {
				continue
			}
			if r.at = s.at; s.object == nil {
				err = fmt.Errorf("%s %s of %s: %w%s", o.GetKind(), o.GetName(), s.file, err, text.BooleanAdvice(r.file.beside(s.file), err))
			}
			return err
		}
	}
	return nil
}

// placeOf finds the place of an object, and gives it its namespace, which is made if need be.
func (r *runner) placeOf(o *unstructured.Unstructured) (place, error) {
	served, found := r.server.LookupKind(o.GroupVersionKind())
	if !found {
		return place{}, fmt.Errorf("the cluster has no kind %s of %s", o.GetKind(), o.GetAPIVersion())
	}
	if served.Namespaced {
		o.SetNamespace(cmp.Or(o.GetNamespace(), home))
		if err := r.makeNamespace(o.GetNamespace()); err != nil {
			return place{}, err
		}
	}
	return place{served, o.GetNamespace(), o.GetName()}, nil
}

func (r *runner) makeNamespace(name string) error {
	if found, known := r.server.LookupKind(namespaceKind); known {
		p := place{served: found, name: name}
		if o, err := r.get(p); err != nil || o != nil {
			return err
		}
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(namespaceKind)
		o.SetName(name)
		if _, err := r.reach(p).Create(context.Background(), o, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	return nil
}

var namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// create creates an object, with its status.
func (r *runner) create(o *unstructured.Unstructured) error {
	p, err := r.placeOf(o)
	if err != nil {
		return err
	}
	out, err := r.reach(p).Create(context.Background(), o, metav1.CreateOptions{FieldManager: manager, FieldValidation: strict})
	if err != nil {
		return refused{err}
	}
	status, has := o.Object["status"]
	if !has || !p.served.Status || o.GetKind() == crdKind {
		return nil
	}
	out.Object["status"] = status
	if _, err := r.reach(p).UpdateStatus(context.Background(), out, metav1.UpdateOptions{FieldManager: manager, FieldValidation: strict}); err != nil {
		return refused{err}
	}
	return nil
}

const strict = metav1.FieldValidationStrict

// apply applies an object by server-side apply, with its status.
func (r *runner) apply(o *unstructured.Unstructured) error {
	p, err := r.placeOf(o)
	if err != nil {
		return err
	}
	status, has := o.Object["status"]
	if has && p.served.Status {
		delete(o.Object, "status")
	}
	if err := r.send(p, types.ApplyPatchType, o.Object); err != nil || !has || !p.served.Status {
		return err
	}
	o.Object["status"] = status
	delete(o.Object, "spec")
	return r.send(p, types.ApplyPatchType, o.Object, "status")
}

// patches merges fields into objects.
func (r *runner) patches(s *step) error {
	for _, name := range sortedKeys(s.Patch) {
		p, err := r.place(name)
		if err != nil {
			return err
		}
		fields, is := s.Patch[name].(map[string]any)
		if !is {
			return fmt.Errorf("want a map of fields for %s", name)
		}
		fields = maps.Clone(fields)
		status, has := fields["status"]
		if has && p.served.Status {
			delete(fields, "status")
			if err := r.send(p, types.MergePatchType, map[string]any{"status": status}, "status"); err != nil {
				return err
			}
		}
		if len(fields) > 0 {
			if err := r.send(p, types.MergePatchType, fields); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends a patch.
func (r *runner) send(p place, kind types.PatchType, body map[string]any, subresources ...string) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: manager, FieldValidation: strict}
	if force := true; kind == types.ApplyPatchType {
		options.Force = &force
	}
	if _, err := r.reach(p).Patch(context.Background(), p.name, kind, data, options, subresources...); err != nil {
		return refused{r.brief(p, err)}
	}
	return nil
}

// unknownField matches a field in an error of the API server.
var unknownField = regexp.MustCompile(`unknown field "([^"]+)"`)

// brief leaves out of an error about a patch the object that it would make, which the API server quotes as a whole. A mistyped field has
// the nearest one that the object has.
func (r *runner) brief(p place, err error) error {
	_, quoting, _ := strings.Cut(err.Error(), "patch: Invalid value: ")
	object, failed := strconv.QuotedPrefix(quoting)
	if failed != nil {
		return err
	}
	now, failed := r.get(p)
	if failed != nil || now == nil {
		return err
	}
	message := unknownField.ReplaceAllStringFunc(quoting[len(object):], func(found string) string {
		path := dsl.Path(strings.Split(unknownField.FindStringSubmatch(found)[1], "."))
		around, _ := path[:len(path)-1].In(now.Object)
		fields, _ := around.(map[string]any)
		if near, is := words.Nearest(path[len(path)-1], sortedKeys(fields)); is {
			found += fmt.Sprintf(" (did you mean %q?)", near)
		}
		return found
	})
	return fmt.Errorf("the patch of %s is invalid%s", p, message)
}

// install creates a CRD, or updates it.
func (r *runner) install(crd *unstructured.Unstructured) error {
	err := r.apply(crd.DeepCopy())
	if err == nil {
		r.cluster.Settle()
	}
	return err
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// compact is a value in one line.
func compact(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}
