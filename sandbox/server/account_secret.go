// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/base64"
	"maps"

	"github.com/handwerk-dev/handwerk/sandbox/server/rbac"
	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func secrets() schema.GroupResource { return schema.GroupResource{Resource: "secrets"} }

// fillTokensLater plans a look at the Secrets of a namespace that are to have the token of a ServiceAccount, after a write that
// may concern one.
func (s *Server) fillTokensLater(t *table, c store.Change) {
	if s.garbage == nil {
		return
	}
	switch t.name() {
	case secrets():
		if c.What == store.Deleted || !lacksToken(c.Row.Tree()) {
			return
		}
	case serviceAccounts():
		if c.What != store.Deleted {
			return
		}
	default:
		return
	}
	s.later(collectLag, func() {
		s.mu.Lock()
		defer s.unlock()
		s.byItself(func() { s.fillTokens(c.Row.Namespace) })
	})
}

// isOfToken reports whether a Secret is to have the token of a ServiceAccount.
func isOfToken(secret *unstructured.Unstructured) bool {
	return secret.Object["type"] == string(corev1.SecretTypeServiceAccountToken)
}

// lacksToken reports whether a Secret is to have a token and has none.
func lacksToken(secret *unstructured.Unstructured) bool {
	data, _ := secret.Object["data"].(map[string]any)
	return isOfToken(secret) && data[corev1.ServiceAccountTokenKey] == nil
}

// fillTokens gives the Secrets of a namespace their tokens, and deletes those whose ServiceAccount does not exist, as the controller
// of a real cluster does.
func (s *Server) fillTokens(namespace string) {
	t := s.tables[secrets()]
	for _, row := range t.objects.In(namespace) {
		secret := row.Tree()
		if !isOfToken(secret) || secret.GetDeletionTimestamp() != nil {
			continue
		}
		notes := secret.GetAnnotations()
		account := s.tables[serviceAccounts()].get(types.NamespacedName{Namespace: namespace, Name: notes[corev1.ServiceAccountNameKey]})
		uid := notes[corev1.ServiceAccountUIDKey]
		switch {
		case account == nil, uid != "" && uid != string(account.GetUID()):
			_, _ = s.delete(t, secret, metav1.DeleteOptions{}) // it stays only if a finalizer holds it
		case lacksToken(secret):
			s.fillToken(t, secret, account)
		}
	}
}

// fillToken gives a Secret a token without an end.
func (s *Server) fillToken(t *table, secret, account *unstructured.Unstructured) {
	namespace, name := secret.GetNamespace(), secret.GetName()
	b := bearer{
		user:  rbac.ServiceAccount(namespace, account.GetName(), string(account.GetUID())),
		bound: &bound{secrets(), types.NamespacedName{Namespace: namespace, Name: name}, secret.GetUID()},
	}
	token, err := s.accountToken(b, namespace, account)
	if err != nil {
		return // not reached: the random numbers of a system do not end
	}
	next := secret.DeepCopy()
	notes := next.GetAnnotations()
	notes[corev1.ServiceAccountUIDKey] = string(account.GetUID())
	next.SetAnnotations(notes)
	data, _ := next.Object["data"].(map[string]any)
	data = maps.Clone(data)
	if data == nil {
		data = map[string]any{}
	}
	for key, text := range map[string]string{
		corev1.ServiceAccountRootCAKey: s.certificate, corev1.ServiceAccountNamespaceKey: namespace, corev1.ServiceAccountTokenKey: token,
	} {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	next.Object["data"] = data
	r := Request{Verb: "update", Resource: secrets().WithVersion("v1"), Namespace: namespace, Name: name, agent: controllerManager}
	_, _ = s.replace(t, r, secret, next) // what is refused stays without, as with a real controller
}
