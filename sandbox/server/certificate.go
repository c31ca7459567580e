// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"maps"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/handwerk-dev/handwerk/sandbox/server/rbac"
)

func signingRequests() schema.GroupResource {
	return schema.GroupResource{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}
}

// signedBy says in a new CertificateSigningRequest who asks for the certificate, whatever the client has sent.
func signedBy(request *unstructured.Unstructured, user rbac.User) error {
	who, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&certificatesv1.CertificateSigningRequestSpec{
		Username: user.Name, UID: user.UID, Groups: user.Groups, Extra: extraOf[certificatesv1.ExtraValue](user),
	})
	if err != nil {
		return err
	}
	spec, _ := request.Object["spec"].(map[string]any)
	spec = maps.Clone(spec)
	for _, key := range []string{"username", "uid", "groups", "extra"} {
		delete(spec, key)
		if value, found := who[key]; found {
			spec[key] = value
		}
	}
	request.Object["spec"] = spec
	return nil
}

// extraOf returns what else is known of a user, in the type of an API group.
func extraOf[T ~[]string](user rbac.User) map[string]T {
	if len(user.Extra) == 0 {
		return nil
	}
	out := map[string]T{}
	for key, values := range user.Extra {
		out[key] = values
	}
	return out
}

// approved returns the status of a CertificateSigningRequest after its approval, which changes the conditions alone.
func approved(old, next *unstructured.Unstructured) map[string]any {
	was, _ := old.Object["status"].(map[string]any)
	out := maps.Clone(was)
	if out == nil {
		out = map[string]any{}
	}
	delete(out, "conditions")
	if conditions, found, _ := unstructured.NestedFieldNoCopy(next.Object, "status", "conditions"); found {
		out["conditions"] = conditions
	}
	return out
}

// resetsOfRequest returns the fields of a CertificateSigningRequest that nobody manages who writes it, or a part of it.
func resetsOfRequest(subresource string) []fieldpath.Path {
	spec := fieldpath.MakePathOrDie("spec")
	switch subresource {
	case "approval":
		return []fieldpath.Path{spec, fieldpath.MakePathOrDie("status", "certificate")}
	case "status":
		return []fieldpath.Path{spec, fieldpath.MakePathOrDie("status", "conditions")}
	}
	return []fieldpath.Path{spec, fieldpath.MakePathOrDie("status")}
}
