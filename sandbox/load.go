// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// Load stores objects, such as a *corev1.Pod, an *unstructured.Unstructured or a list. CRDs and namespaces come first, and a
// missing namespace is made. The zero namespace is "default".
//
// An object with a uid is taken as it is, but for its resourceVersion: with its times, managed fields, finalizers, owners and
// status. Without a uid, it is created as by kubectl create, or updated if there is one of its name, and has the status, the
// creationTimestamp and the deletionTimestamp that it says.
//
// The error has a line for each object that cannot be stored. The other objects are stored.
func (s *Sandbox) Load(objects ...runtime.Object) error {
	var errs []error
	var trees []*unstructured.Unstructured
	add := func(o runtime.Object) error {
		tree, err := treeOf(o)
		if err != nil {
			errs = append(errs, fmt.Errorf("loading %T: %w", o, err))
			return nil
		}
		trees = append(trees, tree)
		return nil
	}
	for _, o := range objects {
		if meta.IsListType(o) {
			errs = append(errs, meta.EachListItem(o, add))
		} else {
			errs = append(errs, add(o))
		}
	}
	for i, err := range s.server.LoadAll(trees) {
		if err != nil {
			errs = append(errs, fmt.Errorf("loading %s: %w", nameOf(trees[i]), err))
		}
	}
	return errors.Join(errs...)
}

// treeOf returns an object as a tree that is not shared. The kind of a type that client-go knows may be left out.
func treeOf(o runtime.Object) (*unstructured.Unstructured, error) {
	if u, is := o.(*unstructured.Unstructured); is {
		return u.DeepCopy(), nil
	}
	kind := o.GetObjectKind().GroupVersionKind()
	if kind.Empty() {
		known, _, err := scheme.Scheme.ObjectKinds(o)
		if err != nil {
			return nil, errors.New("its TypeMeta has to say apiVersion and kind, as client-go does not know its type")
		}
		kind = known[0]
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{Object: tree}
	out.SetGroupVersionKind(kind)
	return out, nil
}

// nameOf returns the name of an object for people, as in Deployment shop/web.
func nameOf(o *unstructured.Unstructured) string {
	name := cmp.Or(o.GetName(), "without a name")
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return cmp.Or(o.GetKind(), "object") + " " + name
}

// LoadFiles stores the objects of YAML and JSON files as [Sandbox.Load] does. A file may have several documents, and lists
// as kubectl get -o yaml writes them. A folder stands for the files in it whose names end with .yaml, .yml or .json. A file
// may have 16 MiB.
func (s *Sandbox) LoadFiles(paths ...string) error {
	return s.loadRead(readObjects(paths, nil, limitedTexts()))
}

// loadOptions stores the objects of the files that the options name.
func (s *Sandbox) loadOptions(o Options) error {
	crds, errs := readCRDs(o.CRDs)
	objects, faults := readObjects(o.Load, o.Input, limitedTexts())
	return s.loadRead(append(crds, objects...), append(errs, faults...))
}

// readCRDs reads the CRDs of files and folders, and skips other objects.
func readCRDs(paths []string) (out []fileObject, errs []error) {
	for _, path := range paths {
		found, faults := readObjects([]string{path}, nil, limitedTexts())
		found = slices.DeleteFunc(found, func(o fileObject) bool { return o.GetKind() != "CustomResourceDefinition" })
		if len(found)+len(faults) == 0 {
			faults = []error{fmt.Errorf("loading CRDs of %s: there is none", path)}
		}
		out, errs = append(out, found...), append(errs, faults...)
	}
	return out, errs
}

// loadRead stores objects that were read. Errs are the errors of reading.
func (s *Sandbox) loadRead(objects []fileObject, errs []error) error {
	var trees []*unstructured.Unstructured
	for _, o := range objects {
		trees = append(trees, o.Unstructured)
	}
	for i, err := range s.server.LoadAll(trees) {
		if err != nil {
			o := objects[i]
			errs = append(errs, fmt.Errorf("loading %s: %s: %w", o.place(), nameOf(o.Unstructured), err))
		}
	}
	return errors.Join(errs...)
}
