// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"maps"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"k8s.io/apiserver/pkg/admission"

	"github.com/handwerk-dev/handwerk/sandbox/server/rbac"
)

// issuer is who signs the tokens of ServiceAccounts, and for whom they are if their requests do not say so.
const issuer = "https://kubernetes.default.svc.cluster.local"

const (
	// usualLife and shortestLife are how long a token is valid, in seconds: if its request does not say so, and at least.
	usualLife, shortestLife = 3600, 600
	// longestLife is the longest life of a token in seconds.
	longestLife = 1 << 32
)

// issue answers the request of a ServiceAccount's token.
func (s *Server) issue(r Request, sent *unstructured.Unstructured) (any, error) {
	kind := sent.GroupVersionKind().GroupKind()
	if errs := placedAs(sent, r); len(errs) > 0 {
		return nil, apierrors.NewInvalid(kind, r.Name, errs)
	}
	account := s.tables[serviceAccounts()].get(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	if account == nil {
		return nil, apierrors.NewNotFound(serviceAccounts(), r.Name)
	}
	var request authenticationv1.TokenRequest
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sent.Object, &request); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	life := int64(usualLife)
	if asked := request.Spec.ExpirationSeconds; asked != nil {
		life = *asked
	}
	if errs := validateLife(life); len(errs) > 0 {
		return nil, apierrors.NewInvalid(kind, "", errs) // a real server leaves out the name here
	}
	if err := s.validated(s.tables[serviceAccounts()], r, subject{kind: sent.GroupVersionKind(), operation: admission.Create, next: sent}); err != nil {
		return nil, err
	}
	request.Spec.ExpirationSeconds = &life
	if len(request.Spec.Audiences) == 0 {
		request.Spec.Audiences = []string{issuer}
	}
	b := bearer{user: rbac.ServiceAccount(r.Namespace, r.Name, string(account.GetUID())), audiences: request.Spec.Audiences}
	b.ends = s.clock.Now().Add(time.Duration(life) * time.Second)
	var err error
	if ref := request.Spec.BoundObjectRef; ref != nil {
		if b.bound, err = s.boundTo(r, ref); err != nil {
			return nil, err
		}
	}
	if request.Status.Token, err = s.accountToken(b, r.Namespace, account); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	request.Status.ExpirationTimestamp = metav1.NewTime(b.ends)
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&request.Spec)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	sent.Object["spec"] = spec
	s.manageReview(r, sent)
	maps.Copy(sent.Object["metadata"].(map[string]any), map[string]any{
		"name": r.Name, "namespace": r.Namespace, "uid": string(account.GetUID()), "creationTimestamp": s.now(),
	})
	return answered(sent, &request.Status)
}

// placedAs returns why the request of a token is not one of the ServiceAccount of its path.
func placedAs(sent *unstructured.Unstructured, r Request) (out field.ErrorList) {
	path := field.NewPath("metadata")
	if name := sent.GetName(); name != "" && name != r.Name {
		return append(out, field.Invalid(path.Child("name"), name, "must match the service account name if specified"))
	}
	if namespace := sent.GetNamespace(); namespace != "" && namespace != r.Namespace {
		out = append(out, field.Invalid(path.Child("namespace"), namespace, "must match the service account namespace if specified"))
	}
	return out
}

func validateLife(seconds int64) (out field.ErrorList) {
	path := field.NewPath("spec", "expirationSeconds")
	if seconds < shortestLife {
		out = append(out, field.Invalid(path, seconds, "may not specify a duration less than 10 minutes"))
	}
	if seconds > longestLife {
		out = append(out, field.Invalid(path, seconds, "may not specify a duration larger than 2^32 seconds"))
	}
	return out
}

// bound is the object with which a token ends.
type bound struct {
	resource schema.GroupResource
	key      types.NamespacedName
	uid      types.UID
}

// boundTo returns the object with which the token of a request ends.
func (s *Server) boundTo(r Request, ref *authenticationv1.BoundObjectReference) (*bound, error) {
	out := &bound{key: types.NamespacedName{Namespace: r.Namespace, Name: ref.Name}}
	switch ref.APIVersion + "/" + ref.Kind {
	case "v1/Pod":
		out.resource.Resource = "pods"
	case "v1/Secret":
		out.resource.Resource = "secrets"
	case "v1/Node":
		out.resource.Resource, out.key.Namespace = "nodes", ""
	default:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot bind token to object of type %s",
			schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)))
	}
	o := s.tables[out.resource].get(out.key)
	if o == nil {
		return nil, apierrors.NewNotFound(out.resource, ref.Name)
	}
	if account, _, _ := unstructured.NestedString(o.Object, "spec", "serviceAccountName"); ref.Kind == "Pod" && account != r.Name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", r.Name))
	}
	if out.uid = o.GetUID(); ref.UID != "" && ref.UID != out.uid {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: ref.Kind}, ref.Name, fmt.Errorf(
			"the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
	}
	return out, nil
}

// accountToken returns a new token of a ServiceAccount, with what a client may read in it.
func (s *Server) accountToken(b bearer, namespace string, account *unstructured.Unstructured) (string, error) {
	named := func(name string, uid types.UID) map[string]any { return map[string]any{"name": name, "uid": uid} }
	about := map[string]any{"namespace": namespace, "serviceaccount": named(account.GetName(), account.GetUID())}
	if b.bound != nil {
		kind := map[string]string{"pods": "pod", "secrets": "secret", "nodes": "node"}[b.bound.resource.Resource]
		about[kind] = named(b.bound.key.Name, b.bound.uid)
	}
	id, now := string(uuid.NewUUID()), s.clock.Now().Unix()
	b.user.Extra = map[string][]string{"authentication.kubernetes.io/credential-id": {"JTI=" + id}}
	if b.bound != nil && b.bound.resource.Resource == "pods" {
		b.user.Extra["authentication.kubernetes.io/pod-name"] = []string{b.bound.key.Name}
		b.user.Extra["authentication.kubernetes.io/pod-uid"] = []string{string(b.bound.uid)}
	}
	claims := map[string]any{
		"aud": b.audiences, "iat": now, "nbf": now, "iss": issuer, "jti": id, "sub": b.user.Name, "kubernetes.io": about,
	}
	if !b.ends.IsZero() {
		claims["exp"] = b.ends.Unix()
	}
	out, err := s.signed(claims)
	s.tokens[out] = b
	return out, err
}
