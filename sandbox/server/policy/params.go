// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Query says which objects are the parameters of a binding.
type Query struct {
	// Namespace is empty for parameters without one.
	Namespace string
	// Name is that of the only one. If it is empty, Selector selects.
	Name     string
	Selector labels.Selector
}

// Param returns the kind of a policy's parameters; false if it has none.
func (r *rules) Param() (schema.GroupVersionKind, bool, error) {
	if r.ParamKind == nil {
		return schema.GroupVersionKind{}, false, nil
	}
	version, err := schema.ParseGroupVersion(r.ParamKind.APIVersion)
	return version.WithKind(r.ParamKind.Kind), err == nil, err
}

// UnknownKind returns the error of a policy whose kind of parameters is not served.
func UnknownKind(kind schema.GroupVersionKind) error {
	return fmt.Errorf("failed to find resource referenced by paramKind: '%v'", kind)
}

// Query returns which parameters a binding needs for an object in a namespace; false if it uses none. Namespaced says that
// the parameters have a namespace.
func (b *Binding) Query(namespace string, namespaced bool) (Query, bool, error) {
	ref := b.Param
	if ref == nil {
		return Query{}, false, nil
	}
	out := Query{Name: ref.Name}
	switch {
	case !namespaced && ref.Namespace != "":
		return out, false, errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	case namespaced && ref.Namespace != "":
		out.Namespace = ref.Namespace
	case namespaced && namespace == "":
		return out, false, errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
	case namespaced:
		out.Namespace = namespace
	}
	if out.Name != "" {
		return out, true, nil
	}
	var err error
	out.Selector, err = metav1.LabelSelectorAsSelector(orAll(ref.Selector))
	return out, err == nil, err
}

// Found returns the parameters for a binding, or an error if it needs some and none were found.
func (b *Binding) Found(params []runtime.Object) ([]runtime.Object, error) {
	action := b.Param.ParameterNotFoundAction
	if len(params) == 0 && action != nil && *action == admissionv1.DenyAction {
		return nil, errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")
	}
	return params, nil
}
