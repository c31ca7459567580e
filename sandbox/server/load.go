// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// loader is the field manager of loaded objects that come from no server.
const loader = "sandbox"

// LoadAll stores objects in one step, and returns an error for each object at its place: nil if it is stored. CRDs and
// namespaces come first, then accounts and classes of Pods, and the others in the order of their versions. A missing namespace is made.
//
// An object with a uid comes from a server, and stays as it is but for its version. Others are created, or take the place of
// the objects of their names, and have the status and the times that they say. The server takes ownership of the objects.
func (s *Server) LoadAll(objects []*unstructured.Unstructured) []error {
	if len(objects) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.unlock()
	for _, o := range objects {
		s.passUID(string(o.GetUID()))
	}
	errs := make([]error, len(objects))
	for _, i := range loadOrder(objects) {
		errs[i] = s.loadOne(objects[i])
	}
	if s.garbage != nil {
		for _, row := range s.tables[namespaces()].objects.In("") {
			s.furnish(row.Name)
		}
		s.collectLater()
	}
	s.sweepLater()
	return errs
}

// loadOrder returns the indexes of objects in the order in which they are loaded.
func loadOrder(objects []*unstructured.Unstructured) []int {
	type key struct{ rank, version int64 }
	keys, out := make([]key, len(objects)), make([]int, len(objects))
	for i, o := range objects {
		k := key{rank: 3, version: math.MaxInt64} // who has no version is the newest
		if version, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64); err == nil {
			k.version = version
		}
		switch o.GroupVersionKind().GroupKind() {
		case schema.GroupKind{Group: crds().Group, Kind: "CustomResourceDefinition"}:
			k.rank = 0
		case schema.GroupKind{Kind: "Namespace"}:
			k.rank = 1
		case schema.GroupKind{Kind: "ServiceAccount"}, schema.GroupKind{Group: schedulingv1.GroupName, Kind: "PriorityClass"},
			schema.GroupKind{Group: nodev1.GroupName, Kind: "RuntimeClass"}:
			k.rank = 2 // Pods need them
		}
		keys[i], out[i] = k, i
	}
	slices.SortStableFunc(out, func(a, b int) int {
		return cmp.Or(cmp.Compare(keys[a].rank, keys[b].rank), cmp.Compare(keys[a].version, keys[b].version))
	})
	return out
}

// passUID keeps the server from giving a new object a uid that another server of this kind has given.
func (s *Server) passUID(uid string) {
	if number, ours := strings.CutPrefix(uid, uidPrefix); ours {
		if n, err := strconv.Atoi(number); err == nil {
			s.uids = max(s.uids, n)
		}
	}
}

// loadOne stores an object.
func (s *Server) loadOne(o *unstructured.Unstructured) error {
	if o.GetAPIVersion() == "" || o.GetKind() == "" {
		return errors.New("apiVersion and kind are required")
	}
	t, err := s.tableOf(o.GroupVersionKind())
	if err != nil {
		return err
	}
	switch {
	case o.GetName() == "":
		return errors.New("metadata.name is required")
	case t.namespaced:
		o.SetNamespace(cmp.Or(o.GetNamespace(), metav1.NamespaceDefault))
		s.add(loader, namespaces(), "", o.GetNamespace(), nil)
	case o.GetNamespace() != "":
		return fmt.Errorf("metadata.namespace is %s, and objects of its kind have no namespace", o.GetNamespace())
	}
	r := Request{
		Verb: "create", Resource: t.name().WithVersion(o.GroupVersionKind().Version), Namespace: o.GetNamespace(), Name: o.GetName(),
		options: url.Values{"fieldValidation": {metav1.FieldValidationStrict}}, agent: loader, trusted: true, // without a reply, no webhook is asked
	}
	if o.GetUID() != "" {
		err = s.takeOver(t, r, o)
	} else {
		err = s.createLoaded(t, r, o)
	}
	if err == nil && t.group == admissionv1.GroupName && s.unenforced != nil {
		for _, text := range s.network.unenforced(t, o) {
			s.unenforced(text)
		}
	}
	return err
}

// tableOf returns the table of a kind's objects, or why there is none.
func (s *Server) tableOf(kind schema.GroupVersionKind) (*table, error) {
	for _, t := range s.tables {
		switch {
		case t.groupKind() != kind.GroupKind() || t.withdrawn:
		case !slices.Contains(t.versions, kind.Version):
			return nil, fmt.Errorf("its kind is served in %s, not in %s", strings.Join(t.versions, ", "), kind.Version)
		default:
			return t, nil
		}
	}
	if s.own(kind.Group) {
		return nil, fmt.Errorf("the sandbox has no kind %s in %s", kind.Kind, kind.GroupVersion())
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return nil, fmt.Errorf("the CRD of its kind is missing, which is usually named %s: --crds or --load brings it", plural.GroupResource())
}

// takeOver stores an object of another server as it is. An object stays although its owner is missing: who has dumped one
// kind of objects wants to see them.
func (s *Server) takeOver(t *table, r Request, o *unstructured.Unstructured) error {
	if err := s.asRead(t, r, o); err != nil {
		return err
	}
	if o.GetCreationTimestamp().Time.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(s.clock.Now()))
	}
	if t.name() == crds() {
		if err := s.serveLoaded(o); err != nil {
			return err
		}
	}
	change := store.Added
	if t.get(keyOf(o)) != nil {
		change = store.Modified
	}
	if s.garbage == nil {
		_, err := s.write(t, change, o)
		return err
	}
	due := s.garbage.due
	_, err := s.write(t, change, o)
	if o.GetDeletionTimestamp() == nil {
		s.garbage.due = due
	}
	return err
}

// asRead brings an object of another server into the form of its schema, as a server does with what it reads from etcd.
func (s *Server) asRead(t *table, r Request, o *unstructured.Unstructured) (err error) {
	switch form := s.schemaOf(t, r.Resource.Version).(type) {
	case nil:
	case Typed:
		_, err = form.Decode(o.Object, nil)
	default:
		if _, err = form.Prune(o.Object); err == nil {
			form.Default(o.Object)
		}
	}
	return err
}

// serveLoaded serves the resource of a CRD that comes from another server.
func (s *Server) serveLoaded(crd *unstructured.Unstructured) error {
	if crd.Object["status"] == nil {
		crd.Object["status"] = map[string]any{"storedVersions": []any{}}
		s.accept(crd)
	}
	r, err := resourceOf(crd)
	if err != nil {
		return err
	}
	if t, served := s.tables[r.name()]; served && !t.custom {
		return fmt.Errorf("%s is a resource of the sandbox's own", r.name())
	}
	return s.redefine(crd)
}

// createLoaded stores an object that comes from no server, or updates the one of its name.
func (s *Server) createLoaded(t *table, r Request, o *unstructured.Unstructured) error {
	given := o.DeepCopy()
	o.SetResourceVersion("")
	if old := t.get(keyOf(o)); old != nil {
		r.Verb = "update"
		o.SetResourceVersion(old.GetResourceVersion())
	}
	r.view = t.viewIn(r.Resource.Version)
	r.Body = o.Object
	stored, err := s.single(t, r)
	if err != nil {
		return err
	}
	if status, _ := given.Object["status"].(map[string]any); len(status) > 0 && t.status {
		next := stored.DeepCopy()
		next.Object["status"] = status
		r.Verb, r.Subresource, r.Body = "update", "status", next.Object
		if stored, err = s.single(t, r); err != nil {
			return err
		}
	}
	if next := withTimes(stored, given); next != nil {
		s.commit(t, store.Modified, next)
	}
	return nil
}

// withTimes returns an object with the times that another one says in its metadata, or nil if it has them.
func withTimes(stored, given *unstructured.Unstructured) *unstructured.Unstructured {
	next := stored.DeepCopy()
	from, _ := given.Object["metadata"].(map[string]any)
	to, _ := next.Object["metadata"].(map[string]any)
	for _, key := range []string{"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		if value := from[key]; value != nil {
			to[key] = value
		}
	}
	if reflect.DeepEqual(stored.Object["metadata"], to) {
		return nil
	}
	return next
}
