// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"

	"github.com/handwerk-dev/handwerk/sandbox/server/admission"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// newChain returns the admission plugins of a server, or nil if it has none. Without the controllers of a
// cluster, Pods need no ServiceAccount.
func (s *Server) newChain(settings Settings) *admission.Chain {
	if !settings.Admission {
		return nil
	}
	return admission.New(storedObjects{s}, admission.Settings{Controllers: settings.Controllers && !settings.Unfurnished})
}

// storedObjects are the objects that admission plugins read. They are called with the server's lock.
type storedObjects struct{ server *Server }

func (o storedObjects) Get(resource schema.GroupResource, namespace, name string) *unstructured.Unstructured {
	t := o.server.tables[resource]
	if t == nil {
		return nil
	}
	return t.get(types.NamespacedName{Namespace: namespace, Name: name})
}

func (o storedObjects) List(resource schema.GroupResource, namespace string) (out []*unstructured.Unstructured) {
	t := o.server.tables[resource]
	if t == nil {
		return nil
	}
	for _, row := range t.objects.In(namespace) {
		out = append(out, row.Tree())
	}
	return out
}

// admissionOf returns what admission plugins are told of a write.
func admissionOf(t *table, r Request, old, next *unstructured.Unstructured) admission.Request {
	return admission.Request{
		Resource: t.name(), Kind: t.groupKind(), Subresource: r.Subresource, Namespace: r.Namespace,
		Name: cmp.Or(r.prefix, next.GetName()), Object: next, Old: old, Warn: r.reply.warn,
	}
}

// complete lets admission plugins complete an object.
func (s *Server) complete(t *table, r Request, old, next *unstructured.Unstructured) error {
	if s.chain == nil {
		return nil
	}
	return s.chain.Complete(admissionOf(t, r, old, next))
}

// allocate gives a Service the addresses that it lacks.
func (s *Server) allocate(t *table, r Request, old, next *unstructured.Unstructured) error {
	if s.chain == nil {
		return nil
	}
	return s.chain.Allocate(admissionOf(t, r, old, next))
}

// approve returns why admission plugins, policies or webhooks refuse a valid object, or nil.
func (s *Server) approve(t *table, r Request, old, next *unstructured.Unstructured) error {
	if s.chain != nil {
		if err := s.chain.Refuse(admissionOf(t, r, old, next)); err != nil {
			return err
		}
	}
	if s.validates(t, r) { // else the subject is not needed, which may have to be converted
		if err := s.validated(t, r, t.subjectOf(r, old, next)); err != nil {
			return err
		}
	}
	if _, err := s.ask(t, r, false, old, next); err != nil || s.chain == nil {
		return err
	}
	return s.chain.Charge(admissionOf(t, r, old, next))
}
