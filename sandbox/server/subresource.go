// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"reflect"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// subresource is a part of objects that has a path of its own.
type subresource struct {
	name  string
	verbs []string
	// kind is the kind of what clients send and get.
	kind *metav1.GroupVersionKind
}

// specials returns the subresources of a built-in resource beside its status and its scale.
func (r *resource) specials() []subresource {
	kind := func(group, name string) *metav1.GroupVersionKind {
		return &metav1.GroupVersionKind{Group: group, Version: "v1", Kind: name}
	}
	switch r.group + "/" + r.plural {
	case "/namespaces":
		return []subresource{{"finalize", []string{"update"}, kind("", "Namespace")}}
	case "/pods":
		return []subresource{
			{"attach", []string{"create", "get"}, kind("", "PodAttachOptions")},
			{"binding", []string{"create"}, kind("", "Binding")},
			{"ephemeralcontainers", []string{"get", "patch", "update"}, kind("", "Pod")},
			{"eviction", []string{"create"}, kind(policyv1.GroupName, "Eviction")}, // kubectl drain looks for it
			{"exec", []string{"create", "get"}, kind("", "PodExecOptions")},
			{"log", []string{"get"}, kind("", "Pod")},
			{"portforward", []string{"create", "get"}, kind("", "PodPortForwardOptions")},
			{"proxy", []string{"create", "delete", "get", "patch", "update"}, kind("", "PodProxyOptions")},
			{"resize", []string{"get", "patch", "update"}, kind("", "Pod")},
		}
	case "/serviceaccounts":
		return []subresource{{"token", []string{"create"}, kind(authenticationv1.GroupName, "TokenRequest")}}
	case certificatesv1.GroupName + "/certificatesigningrequests":
		return []subresource{{"approval", []string{"get", "patch", "update"}, kind(certificatesv1.GroupName, "CertificateSigningRequest")}}
	}
	return nil
}

// special returns the one of these subresources that has a name.
func (t *table) special(name string) (subresource, bool) {
	all := t.specials()
	i := slices.IndexFunc(all, func(s subresource) bool { return s.name == name })
	if i < 0 {
		return subresource{}, false
	}
	return all[i], true
}

// value returns an empty object of the kind.
func (s subresource) value() any {
	out, err := scheme.Scheme.New(schema.GroupVersionKind(*s.kind))
	if err != nil {
		panic("server: " + err.Error()) // not reached: all these kinds are in the scheme
	}
	return reflect.ValueOf(out).Elem().Interface()
}

// methods returns the methods of HTTP for the verbs, except that of a deletion, which the documents leave out.
func (s subresource) methods() (out []string) {
	for _, verb := range s.verbs {
		known := map[string]string{"create": "post", "get": "get", "patch": "patch", "update": "put"}
		if method := known[verb]; method != "" {
			out = append(out, method)
		}
	}
	return out
}
