// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes/scheme"
)

// Call is a request that policies are asked about.
type Call struct {
	Version
	Subresource     string
	Operation       admission.Operation
	Namespace, Name string
	// Options are those of the request, such as metav1.CreateOptions; nil if it has none.
	Options runtime.Object
	DryRun  bool
	User    user.Info
	// Space is the namespace of the object; nil for an object without one, and for a namespace itself.
	Space *corev1.Namespace
	// Labels are those of the namespace for selectors, also of a namespace that is written itself.
	Labels map[string]string
	// Authorizer answers the questions of expressions about rights.
	Authorizer authorizer.UnconditionalAuthorizer
	// Equivalent are the other versions of the resource.
	Equivalent []Version
}

// Version is a resource in one version, with its objects.
type Version struct {
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
	// Object is to be stored, and Old is; each may be nil. They are not changed.
	Object, Old map[string]any
}

// attributes returns the call in the form of the API server.
func (c *Call) attributes() admission.Attributes {
	return admission.NewAttributesRecord(formed(c.Kind, c.Object), formed(c.Kind, c.Old), c.Kind, c.Namespace, c.Name, c.Resource, c.Subresource,
		c.Operation, c.Options, c.DryRun, c.User)
}

// plain returns the call without its objects, which are not needed to match rules.
func (c *Call) plain() admission.Attributes {
	return admission.NewAttributesRecord(nil, nil, c.Kind, c.Namespace, c.Name, c.Resource, c.Subresource, c.Operation, c.Options, c.DryRun, c.User)
}

// versioned returns the call with the objects of a version.
func (c *Call) versioned(in Version) *admission.VersionedAttributes {
	out := &admission.VersionedAttributes{Attributes: c.attributes(), VersionedKind: in.Kind}
	object, old := out.GetObject(), out.GetOldObject()
	if in.Kind != c.Kind {
		object, old = formed(in.Kind, in.Object), formed(in.Kind, in.Old)
	}
	if object != nil {
		out.VersionedObject = admission.NewLazyObject(object)
	}
	if old != nil {
		out.VersionedOldObject = admission.NewLazyObject(old)
	}
	return out
}

// bindings returns the variables of expressions beside the objects.
func (c *Call) bindings(param runtime.Object) plugincel.OptionalVariableBindings {
	return plugincel.OptionalVariableBindings{VersionedParams: param, Authorizer: c.Authorizer}
}

// formed returns an object as the API server has it in memory: one of its Go type if the kind is built in. Expressions see times
// and absent fields otherwise than in a tree.
func formed(kind schema.GroupVersionKind, tree map[string]any) runtime.Object {
	if tree == nil {
		return nil
	}
	if out, err := scheme.Scheme.New(kind); err == nil && runtime.DefaultUnstructuredConverter.FromUnstructured(tree, out) == nil {
		out.GetObjectKind().SetGroupVersionKind(kind)
		return out
	}
	return &unstructured.Unstructured{Object: tree}
}
