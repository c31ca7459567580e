// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission completes and refuses objects beside their schemas, as the admission plugins of a usual API server do.
//
// A plugin is a step of a chain. Steps that complete an object run before a server checks it, and steps that only refuse it after
// that. The order and the words are those of the API server. A step reads stored objects, and writes none.
package admission

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Objects are the stored objects of a server.
type Objects interface {
	// Get returns an object, or nil.
	Get(resource schema.GroupResource, namespace, name string) *unstructured.Unstructured
	// List returns the objects of a namespace, or all if the namespace is empty.
	List(resource schema.GroupResource, namespace string) []*unstructured.Unstructured
}

// Request is a create or an update of an object.
type Request struct {
	Resource    schema.GroupResource
	Kind        schema.GroupKind
	Subresource string
	Namespace   string
	// Name is how errors call the object. For a generated name it is the prefix.
	Name string
	// Object is to be stored, and Old is stored; nil for a new object.
	Object, Old *unstructured.Unstructured
	// Warn adds warnings to the response.
	Warn func(texts ...string)
}

// Chain is the admission of one server. It is safe for use by several goroutines.
type Chain struct {
	objects Objects
	steps   []step
}

// step is a plugin of the API server. Its functions may be nil.
type step struct {
	// complete changes an object, or refuses it, before the object is checked.
	complete func(*call) error
	// refuse returns why an object that is valid cannot be stored.
	refuse func(*call) error
}

// Settings say which steps a chain has.
type Settings struct {
	// Controllers says that the controllers of a cluster run. Without them no ServiceAccount would be there for Pods, and no
	// finalizer of storage would go. So Pods need no account then, and storage is not protected.
	Controllers bool
}

// New returns the chain of a server with these objects.
func New(objects Objects, settings Settings) *Chain {
	accounts, protects := step{}, step{}
	if settings.Controllers {
		accounts, protects = serviceAccount(), protection()
	}
	return &Chain{objects, []step{
		limitRanger(), accounts, podSecurity(), priority(), tolerations(), defaultStorageClass(), protects, runtimeClass(), defaultIngressClass(),
	}}
}

// Complete completes the object of a request. An error is the response to it.
func (c *Chain) Complete(r Request) error {
	now := &call{Request: r, objects: c.objects}
	for _, s := range c.steps {
		if s.complete == nil {
			continue
		}
		if err := s.complete(now); err != nil {
			return err
		}
	}
	return now.write()
}

// Refuse returns why the valid object of a request cannot be stored, or nil.
func (c *Chain) Refuse(r Request) error {
	now := &call{Request: r, objects: c.objects}
	for _, s := range c.steps {
		if s.refuse == nil {
			continue
		}
		if err := s.refuse(now); err != nil {
			return err
		}
	}
	return nil
}

// call is the work on one request.
type call struct {
	Request
	objects Objects
	// pod and oldPod are typed forms; nil until a step asks for them.
	pod, oldPod *corev1.Pod
}

// forbidden returns the error for an object that a step refuses.
func (c *call) forbidden(format string, args ...any) error {
	return apierrors.NewForbidden(c.Resource, c.Name, fmt.Errorf(format, args...))
}

// internal returns the error for an object that cannot be read.
func internal(err error) error {
	return apierrors.NewInternalError(errors.Join(errors.New("reading an object for admission"), err))
}

// isNew reports whether the request creates an object of a resource.
func (c *call) isNew(resource schema.GroupResource) bool {
	return c.Old == nil && c.Subresource == "" && c.Resource == resource
}
