// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// update replaces an object, or its status, by the sent one.
func (s *Server) update(t *table, r Request, old, sent *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	err := cmp.Or(r.named(sent), s.otherUID(t, sent, old.GetUID()), agrees(t, old, sent), isKind(t, r, sent))
	if err := s.decodedBefore(t, r, sent, err); err != nil {
		return nil, err
	}
	return s.replace(t, r, old, sent)
}

// otherUID returns the error for an update that is about an object with another uid, or nil. An absent object has none.
func (s *Server) otherUID(t *table, sent *unstructured.Unstructured, is types.UID) error {
	uid, key := sent.GetUID(), t.storageKey(sent)
	if uid == "" || uid == is {
		return nil
	}
	if s.dry { // which does not come to the storage
		key = strings.TrimPrefix(key, "/registry")
	}
	return apierrors.NewConflict(t.name(), sent.GetName(), fmt.Errorf(
		"StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: "+
			"Precondition failed: UID in precondition: %s, UID in object meta: %s", key, uid, is))
}

// storageKey returns the key of an object in the storage of a real server, which some of its errors name.
func (t *table) storageKey(o *unstructured.Unstructured) string {
	resource := t.plural
	switch t.group + "/" + t.plural {
	case "/endpoints", "/services":
		resource = "services/" + map[string]string{"endpoints": "endpoints", "services": "specs"}[t.plural]
	case "/nodes":
		resource = "minions"
	case "/replicationcontrollers":
		resource = "controllers"
	case "networking.k8s.io/ingresses":
		resource = "ingress"
	}
	if t.custom || t.name() == crds() {
		resource = t.group + "/" + t.plural
	}
	return path.Join("/registry", resource, o.GetNamespace(), o.GetName())
}

// replace replaces old by next, as far as that is allowed. It takes ownership of next.
func (s *Server) replace(t *table, r Request, old, next *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := s.decodedBefore(t, r, next, cmp.Or(r.named(next), agrees(t, old, next))); err != nil {
		return nil, err
	}
	t.rewrite(next)
	if err := s.decode(t, r, next, old); err != nil {
		return nil, err
	}
	next = s.owned(t, r, old, next)
	if changed, err := s.mutate(t, r, old, next); err != nil {
		return nil, err
	} else if changed != next {
		next = limit(t, r.Subresource, old, changed)
	}
	if err := cmp.Or(s.keep(t, r, old, next), s.allocate(t, r, old, next), s.refused(t, r, next), s.escalates(t, r, next)); err != nil {
		return nil, err
	}
	errs, quiet := immutable(old, next), r
	if len(errs) > 0 { // it is not valid, so it needs no warnings
		quiet.reply = nil
	}
	if errs = append(errs, s.check(t, quiet, next, old)...); len(errs) > 0 {
		return nil, apierrors.NewInvalid(t.refusedKind(), r.Name, errs)
	}
	if err := s.approve(t, r, old, next); err != nil {
		return nil, err
	}
	return s.put(t, r, old, next)
}

// owned returns the parts of next that the endpoint writes, and the rest of old, with the managers of its fields. With a schema that has
// types, no manager changes if any part that a client sends is not of its type.
func (s *Server) owned(t *table, r Request, old, next *unstructured.Unstructured) *unstructured.Unstructured {
	switch {
	case r.applies(), r.foreign:
		return limit(t, r.Subresource, old, next)
	case t.converter(r.Resource.Version) != nil && r.Subresource != "scale":
		return limit(t, r.Subresource, old, s.owners.updated(t, r, old, next))
	}
	return s.owners.updated(t, r, old, limit(t, r.Subresource, old, next))
}

// put stores an update that is allowed, and returns the object as it is then.
func (s *Server) put(t *table, r Request, old, next *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !s.dry {
		next.SetSelfLink("") // it is not stored
	}
	if same(old, next) && !t.partial[old.GetUID()] { // a real server has stored a partial one without some of its defaults
		return old, nil
	}
	if t.raises() && !reflect.DeepEqual(t.desired(r, old), t.desired(r, next)) {
		next.SetGeneration(old.GetGeneration() + 1)
	}
	if t.ends(next) {
		s.commit(t, store.Deleted, old.DeepCopy())
		s.unserve()
		return next, nil
	}
	if err := s.defines(t, r, next); err != nil {
		return nil, err
	}
	return s.write(t, store.Modified, next)
}

// raises reports whether changes raise the generation. That of a PriorityClass stays.
func (t *table) raises() bool { return t.generation && t.group != "scheduling.k8s.io" }

// agrees refuses a write with another resource version.
func agrees(t *table, old, next *unstructured.Unstructured) error {
	switch version := next.GetResourceVersion(); {
	case (version == "" || version == "0") && t.needsVersion():
		kind := schema.GroupKind{Group: t.group, Kind: t.plural} // a real server names the resource here
		return apierrors.NewInvalid(kind, old.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
	case version == "0": // it means any version
	case version != "" && version != old.GetResourceVersion():
		return cmp.Or(unreadable(version), error(apierrors.NewConflict(t.name(), old.GetName(), errors.New(
			"the object has been modified; please apply your changes to the latest version and try again"))))
	}
	return nil
}

// unreadable returns the error for a resource version that is no number, or nil.
func unreadable(version string) error {
	if _, err := strconv.ParseUint(version, 10, 64); err != nil && version != "" {
		return internalError(err)
	}
	return nil
}

// needsVersion reports whether an update has to say which version it changes. For most built-in resources that is optional.
func (t *table) needsVersion() bool {
	switch t.group {
	case "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "coordination.k8s.io", "node.k8s.io", "policy",
		"storagemigration.k8s.io":
		return true
	case "storage.k8s.io":
		return t.plural != "storageclasses" && t.plural != "volumeattributesclasses"
	}
	return t.custom
}

// limit returns the parts of next that the endpoint writes, and the rest of old.
func limit(t *table, subresource string, old, next *unstructured.Unstructured) *unstructured.Unstructured {
	if t.hasPart(subresource) {
		next = partOfPod(subresource, old, next)
	}
	status, found := next.Object["status"]
	switch {
	case subresource == "status":
		if t.group == "" && t.plural == "pods" {
			status, found = withQuality(status, old.Object["status"]), true
		}
		next = t.beside(old, next)
	case subresource == "approval":
		status, found = approved(old, next), true
		next = t.beside(old, next)
	case t.status:
		status, found = old.Object["status"]
		if t.group == "" && t.plural == "services" && found {
			status = serviceStatus(old, next)
		}
	}
	delete(next.Object, "status")
	if found {
		next.Object["status"] = status
	}
	keepMetadata(old, next)
	return next
}

// keepMetadata gives next the metadata of old that clients do not change.
func keepMetadata(old, next *unstructured.Unstructured) {
	if next.GetUID() == "" {
		next.SetUID(old.GetUID())
	}
	from, _ := old.Object["metadata"].(map[string]any)
	to, _ := next.Object["metadata"].(map[string]any)
	for _, key := range []string{"creationTimestamp", "generation", "resourceVersion"} {
		delete(to, key)
		if value, found := from[key]; found {
			to[key] = value
		}
	}
	if value, found := from["deletionTimestamp"]; found {
		to["deletionTimestamp"] = value
	}
	if value, found := from["deletionGracePeriodSeconds"]; found && to["deletionGracePeriodSeconds"] == nil {
		to["deletionGracePeriodSeconds"] = value
	}
}

// withQuality returns a status of a Pod with the class of quality of the former one, which stays.
func withQuality(status, before any) map[string]any {
	next, _ := status.(map[string]any)
	was, _ := before.(map[string]any)
	if next = maps.Clone(next); next == nil {
		next = map[string]any{}
	}
	if was["qosClass"] != nil {
		next["qosClass"] = was["qosClass"]
	}
	return next
}

// serviceStatus returns the status of a Service after a change of its spec. The addresses of a load balancer go with the type.
func serviceStatus(old, next *unstructured.Unstructured) any {
	is := func(o *unstructured.Unstructured) bool {
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "type")
		return kind == "LoadBalancer"
	}
	status, plain := old.Object["status"].(map[string]any)
	if !plain || !is(old) || is(next) {
		return old.Object["status"]
	}
	status = maps.Clone(status)
	status["loadBalancer"] = map[string]any{}
	return status
}

// beside returns an object with what a write of the status may change beside it. Most built-in resources let it change
// metadata, the newer ones and custom ones do not.
func (t *table) beside(old, next *unstructured.Unstructured) *unstructured.Unstructured {
	if t.fixesMetadata() {
		whole := withOldMetadata(old, next)
		if !t.custom {
			whole.SetUID(next.GetUID()) // built-in resources check that the uid is the same, custom ones do not
		}
		return whole
	}
	whole := &unstructured.Unstructured{Object: maps.Clone(old.Object)} // the spec stays, so it can be shared
	whole.Object["metadata"] = next.Object["metadata"]
	switch t.group + "/" + t.plural {
	case "apps/deployments":
		whole.SetLabels(old.GetLabels())
	case "/pods":
		whole.SetOwnerReferences(old.GetOwnerReferences())
	}
	return whole
}

// withOldMetadata returns the old object with the managed fields of next. It shares the spec.
func withOldMetadata(old, next *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(old.Object)}
	meta, _ := old.Object["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	delete(meta, "managedFields")
	out.Object["metadata"] = meta
	PutBack(out.Object, SetAside(next.Object))
	return out
}

// fixesMetadata reports whether a write of the status changes no metadata.
func (t *table) fixesMetadata() bool {
	switch t.group + "/" + t.plural {
	case "apiextensions.k8s.io/customresourcedefinitions", "apiregistration.k8s.io/apiservices",
		"flowcontrol.apiserver.k8s.io/flowschemas", "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
		"networking.k8s.io/servicecidrs", "resource.k8s.io/resourceclaims", "storage.k8s.io/volumeattachments",
		"admissionregistration.k8s.io/validatingadmissionpolicies":
		return true
	}
	return t.custom
}

// immutable returns errors for changes of immutable fields.
func immutable(old, next *unstructured.Unstructured) field.ErrorList {
	var out field.ErrorList
	meta := field.NewPath("metadata")
	if old.GetUID() != next.GetUID() {
		out = append(out, field.Invalid(meta.Child("uid"), next.GetUID(), validation.FieldImmutableErrorMsg))
	}
	if before, now := old.GetDeletionTimestamp(), next.GetDeletionTimestamp(); !before.Equal(now) {
		out = append(out, field.Invalid(meta.Child("deletionTimestamp"), now, validation.FieldImmutableErrorMsg))
	}
	if before, now := old.GetDeletionGracePeriodSeconds(), next.GetDeletionGracePeriodSeconds(); !reflect.DeepEqual(before, now) {
		out = append(out, field.Invalid(meta.Child("deletionGracePeriodSeconds"), now, validation.FieldImmutableErrorMsg))
	}
	if old.GetDeletionTimestamp() == nil {
		return out
	}
	if added := sets.List(sets.New(next.GetFinalizers()...).Difference(sets.New(old.GetFinalizers()...))); len(added) > 0 {
		out = append(out, field.Forbidden(meta.Child("finalizers"),
			fmt.Sprintf("no new finalizers can be added if the object is being deleted, found new finalizers %#v", added)))
	}
	return out
}

// same reports whether a write changes nothing except times in managedFields.
func same(old, next *unstructured.Unstructured) bool {
	a, b := maps.Clone(old.Object), maps.Clone(next.Object)
	metaA, managedA := timeless(old)
	metaB, managedB := timeless(next)
	a["metadata"], b["metadata"] = metaA, metaB
	return reflect.DeepEqual(a, b) && reflect.DeepEqual(managedA, managedB)
}

// timeless returns metadata without managedFields, and these without their times.
func timeless(u *unstructured.Unstructured) (meta map[string]any, managed []any) {
	meta, _ = u.Object["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	managed, _ = meta["managedFields"].([]any)
	managed = slices.Clone(managed)
	for i := range managed {
		if entry, is := managed[i].(map[string]any); is {
			entry = maps.Clone(entry)
			delete(entry, "time")
			managed[i] = entry
		}
	}
	delete(meta, "managedFields")
	return meta, managed
}

// desired returns the part of an object whose change increments the generation.
func (t *table) desired(r Request, u *unstructured.Unstructured) map[string]any {
	out := maps.Clone(u.Object)
	delete(out, "metadata")
	delete(out, "apiVersion")
	if t.status {
		delete(out, "status")
	}
	if t.group == "apps" && t.plural == "deployments" && r.Subresource == "" { // annotations of one are for its ReplicaSets, too
		out["annotations"] = u.GetAnnotations()
	}
	return out
}
