// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/handwerk-dev/handwerk/sandbox/server/policy"
	"github.com/handwerk-dev/handwerk/sandbox/server/rbac"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// subject is the write that admission decides about.
type subject struct {
	kind      schema.GroupVersionKind
	operation admission.Operation
	// old and next may be nil. They are in the version of the request.
	old, next *unstructured.Unstructured
}

// subjectOf returns the subject of a write. A scale is written instead of the object that has it.
func (t *table) subjectOf(r Request, old, next *unstructured.Unstructured) subject {
	out := subject{kind: r.Resource.GroupVersion().WithKind(t.kind), operation: admission.Update}
	switch {
	case next == nil:
		out.operation = admission.Delete
	case old == nil:
		out.operation = admission.Create
	}
	if r.Subresource == "scale" && old != nil && next != nil {
		out.kind, out.old, out.next = scaleKind(), t.scaleOf(old), t.scaleOf(next)
		return out
	}
	out.old, out.next = t.inVersion(old, r.Resource.Version), t.inVersion(next, r.Resource.Version)
	return out
}

// inVersion returns an object, which may be nil, in a version of its resource.
func (t *table) inVersion(o *unstructured.Unstructured, version string) *unstructured.Unstructured {
	if o == nil || o.GetAPIVersion() == t.apiVersion(version) {
		return o
	}
	return t.viewIn(version).converted(o.DeepCopy())
}

// callOf returns a request as policies see it.
func (s *Server) callOf(t *table, r Request, about subject) *policy.Call {
	out := &policy.Call{
		Version:     policy.Version{Resource: r.Resource, Kind: about.kind, Object: fieldsOrNil(about.next), Old: fieldsOrNil(about.old)},
		Subresource: r.Subresource, Operation: about.operation, Namespace: r.Namespace, Name: r.Name, Options: r.optionsFor(about), DryRun: s.dry,
		User: infoOf(r.user), Authorizer: roles{}, Equivalent: t.equivalent(r),
	}
	if s.authorizes {
		out.Authorizer = roles{s.rights()}
	}
	if r.Name == "" && about.operation == admission.Create && about.next != nil {
		out.Name = about.next.GetName()
	}
	if t.name() == namespaces() {
		out.Namespace = out.Name
	}
	space := s.tables[namespaces()].get(types.NamespacedName{Name: out.Namespace})
	if space != nil && t.name() != namespaces() {
		typed := &corev1.Namespace{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(space.Object, typed) == nil {
			out.Space = typed
		}
	}
	if t.name() == namespaces() && r.Subresource == "" && about.next != nil {
		space = about.next
	}
	if space != nil {
		out.Labels = space.GetLabels()
	}
	return out
}

func fieldsOrNil(o *unstructured.Unstructured) map[string]any {
	if o == nil {
		return nil
	}
	return o.Object
}

// equivalent returns the other versions of a resource. All versions have the same scale.
func (t *table) equivalent(r Request) (out []policy.Version) {
	for _, version := range t.versions {
		if version == r.Resource.Version {
			continue
		}
		kind := schema.GroupVersionKind{Group: t.group, Version: version, Kind: t.kind}
		if r.Subresource == "scale" {
			kind = scaleKind()
		}
		out = append(out, policy.Version{Resource: r.Resource.GroupResource().WithVersion(version), Kind: kind})
	}
	return out
}

// objectsIn returns a version that a policy sees, with its objects.
func (t *table) objectsIn(in policy.Version, about subject) policy.Version {
	if in.Kind == about.kind {
		in.Object, in.Old = fieldsOrNil(about.next), fieldsOrNil(about.old)
		return in
	}
	in.Object, in.Old = fieldsOrNil(t.inVersion(about.next, in.Kind.Version)), fieldsOrNil(t.inVersion(about.old, in.Kind.Version))
	return in
}

// optionsFor returns the options of a request as policies see them: those of an operation, not of a verb.
func (r Request) optionsFor(about subject) runtime.Object {
	version := metav1.SchemeGroupVersion
	switch about.operation {
	case admission.Create:
		out := &metav1.CreateOptions{DryRun: r.options["dryRun"], FieldManager: r.options.Get("fieldManager"), FieldValidation: r.options.Get("fieldValidation")}
		out.SetGroupVersionKind(version.WithKind("CreateOptions"))
		return out
	case admission.Update:
		out := &metav1.UpdateOptions{DryRun: r.options["dryRun"], FieldManager: r.options.Get("fieldManager"), FieldValidation: r.options.Get("fieldValidation")}
		out.SetGroupVersionKind(version.WithKind("UpdateOptions"))
		return out
	case admission.Delete:
		out, err := r.deletion()
		if err != nil { // not reached: it was read before
			return nil
		}
		out.SetGroupVersionKind(version.WithKind("DeleteOptions"))
		return &out
	}
	return nil
}

// infoOf returns a user in the form of the API server.
func infoOf(u rbac.User) user.Info {
	return &user.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
}

// roles answer the questions of expressions about rights. Without a policy, everybody has all.
type roles struct{ policy *rbac.Policy }

// Authorize returns what the roles say of a request.
func (a roles) Authorize(_ context.Context, of authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.policy == nil {
		return authorizer.DecisionAllow, "", nil
	}
	u := of.GetUser()
	ask := rbac.Attributes{User: rbac.User{Name: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: u.GetExtra()}, Verb: of.GetVerb()}
	if of.IsResourceRequest() {
		ask.Namespace, ask.Group, ask.Resource, ask.Subresource, ask.Name = of.GetNamespace(), of.GetAPIGroup(), of.GetResource(), of.GetSubresource(), of.GetName()
	} else {
		ask.Path = of.GetPath()
	}
	said := a.policy.Decide(ask)
	if said.Allowed {
		return authorizer.DecisionAllow, said.Reason, nil
	}
	return authorizer.DecisionNoOpinion, said.Reason, nil
}
