// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func pods() schema.GroupResource { return schema.GroupResource{Resource: "pods"} }

// onPod returns a step function for new Pods and for changes of their specs.
func onPod(do func(c *call, pod, old *corev1.Pod) error) func(*call) error {
	return func(c *call) error {
		if c.Resource != pods() || c.Subresource != "" || c.Old != nil && reflect.DeepEqual(c.Old.Object["spec"], c.Object.Object["spec"]) {
			return nil
		}
		if err := c.readPods(); err != nil {
			return err
		}
		return do(c, c.pod, c.oldPod)
	}
}

// onNewPod returns a step function for new Pods.
func onNewPod(do func(c *call, pod *corev1.Pod) error) func(*call) error {
	return onPod(func(c *call, pod, old *corev1.Pod) error {
		if old != nil {
			return nil
		}
		return do(c, pod)
	})
}

// readPods makes the typed forms of the Pods of a request, once.
func (c *call) readPods() (err error) {
	if c.pod != nil {
		return nil
	}
	if c.pod, err = read[corev1.Pod](c.Object); err != nil {
		return internal(err)
	}
	if c.Old == nil {
		return nil
	}
	if c.oldPod, err = read[corev1.Pod](c.Old); err != nil {
		return internal(err)
	}
	return nil
}

// write gives the object of a request the spec and the annotations of its typed form. Steps change nothing else.
func (c *call) write() error {
	if c.pod == nil {
		return nil
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c.pod.Spec)
	if err != nil {
		return internal(err)
	}
	c.Object.Object["spec"] = spec
	if !maps.Equal(c.pod.Annotations, c.Object.GetAnnotations()) {
		c.Object.SetAnnotations(c.pod.Annotations)
	}
	return nil
}

// read returns the typed form of an object, without its managed fields.
func read[T any](o *unstructured.Unstructured) (*T, error) {
	tree := maps.Clone(o.Object)
	if metadata, is := tree["metadata"].(map[string]any); is {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		tree["metadata"] = metadata
	}
	out := new(T)
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(tree, out)
}

// get returns the typed form of a stored object, or nil if there is none.
func get[T any](from Objects, resource schema.GroupResource, namespace, name string) (*T, error) {
	o := from.Get(resource, namespace, name)
	if o == nil {
		return nil, nil
	}
	out, err := read[T](o)
	if err != nil {
		return nil, internal(err)
	}
	return out, nil
}

// list returns the typed forms of the stored objects of a namespace.
func list[T any](from Objects, resource schema.GroupResource, namespace string) (out []*T, err error) {
	for _, o := range from.List(resource, namespace) {
		typed, err := read[T](o)
		if err != nil {
			return nil, internal(err)
		}
		out = append(out, typed)
	}
	return out, nil
}
