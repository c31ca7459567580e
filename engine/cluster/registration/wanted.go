// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// group is that of admission objects.
const group = "admissionregistration.k8s.io"

// kind is a kind of objects that can be kept.
type kind struct {
	group, resource string
	// versions are those that servers may have, with the Kubernetes version that began to serve each
	// (zz_generated.prerelease-lifecycle.go of k8s.io/api/admissionregistration).
	versions map[string]string
}

const crdKind = "CustomResourceDefinition"

// kinds are the kinds of objects by their names.
var kinds = map[string]kind{
	"ValidatingWebhookConfiguration":   {group, "validatingwebhookconfigurations", map[string]string{"v1": "1.16"}},
	"MutatingWebhookConfiguration":     {group, "mutatingwebhookconfigurations", map[string]string{"v1": "1.16"}},
	"ValidatingAdmissionPolicy":        {group, "validatingadmissionpolicies", map[string]string{"v1": "1.30"}},
	"ValidatingAdmissionPolicyBinding": {group, "validatingadmissionpolicybindings", map[string]string{"v1": "1.30"}},
	"MutatingAdmissionPolicy":          {group, "mutatingadmissionpolicies", map[string]string{"v1": "1.36", "v1beta1": "1.34"}},
	"MutatingAdmissionPolicyBinding":   {group, "mutatingadmissionpolicybindings", map[string]string{"v1": "1.36", "v1beta1": "1.34"}},
	crdKind:                            {"apiextensions.k8s.io", "customresourcedefinitions", map[string]string{"v1": "1.16"}},
}

// applied is the annotation with the digest of the object as it was wanted when it was applied. Without it a restart could not see that a
// field is not wanted any more.
const applied = bookkeeping.Domain + "/registered"

// wanted is an object that is kept.
type wanted struct {
	object *unstructured.Unstructured
	gvr    schema.GroupVersionResource
	digest string
	// part: it is a part of an object of others, which is neither created nor deleted here.
	part bool
}

// id names an object, whatever its version.
func (w *wanted) id() string { return w.gvr.Resource + "/" + w.object.GetName() }

// place is where the object is watched.
func (w *wanted) place() place {
	if w.part {
		return place{w.gvr, w.object.GetName()}
	}
	return place{gvr: w.gvr}
}

// name is the object for people.
func (w *wanted) name() string { return w.object.GetKind() + " " + w.object.GetName() }

// newWanted returns an object as it is applied, with labels.
func newWanted(o *unstructured.Unstructured, labels map[string]string) (*wanted, error) {
	gvk := o.GroupVersionKind()
	k, known := kinds[gvk.Kind]
	if !known || gvk.Group != k.group || k.versions[gvk.Version] == "" || o.GetName() == "" {
		return nil, fmt.Errorf("registering %s %s %q: no object of this kind, version and name can be kept", o.GetAPIVersion(), gvk.Kind, o.GetName())
	}
	w := &wanted{gvr: gvk.GroupVersion().WithResource(k.resource), part: gvk.Kind == crdKind, object: &unstructured.Unstructured{}}
	text, err := o.MarshalJSON() // numbers as the API server has them
	if err == nil {
		err = w.object.UnmarshalJSON(text)
	}
	if err != nil {
		return nil, fmt.Errorf("registering %s: %w", w.name(), err)
	}
	if w.part {
		return w, nil
	}
	all := w.object.GetLabels()
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, labels)
	w.object.SetLabels(all)
	if w.digest, err = plain.Digest(w.object.Object); err != nil {
		return nil, fmt.Errorf("registering %s: %w", w.name(), err)
	}
	annotations := w.object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[applied] = w.digest
	w.object.SetAnnotations(annotations)
	return w, nil
}

// matches reports whether an object has all that is wanted. The digest in its annotation says that it has no field that was wanted
// earlier.
func (w *wanted) matches(o *unstructured.Unstructured) bool {
	return contains(o.Object, w.object.Object)
}

// contains reports whether a value has all of another one. Maps may have more fields, as the API server fills in defaults.
func contains(value, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		of, is := value.(map[string]any)
		if !is && len(want) > 0 {
			return false
		}
		for key, each := range want {
			if have, found := of[key]; !found && !isEmpty(each) || !contains(have, each) {
				return false
			}
		}
		return true
	case []any:
		of, is := value.([]any)
		return (is || len(want) == 0) && slices.EqualFunc(of, want, contains)
	}
	return value == want
}

// isEmpty reports whether the API server may leave a value out.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return value == nil
}
