// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func claims() schema.GroupResource { return schema.GroupResource{Resource: "persistentvolumeclaims"} }

// defaultStorageClass gives a new claim without a class the default StorageClass.
func defaultStorageClass() step {
	classes := schema.GroupResource{Group: "storage.k8s.io", Resource: "storageclasses"}
	return defaultClass(claims(), "storageClassName", corev1.BetaStorageClassAnnotation, classes,
		"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
}

// defaultIngressClass gives a new Ingress without a class the default IngressClass.
func defaultIngressClass() step {
	group := networkingv1.GroupName
	return defaultClass(schema.GroupResource{Group: group, Resource: "ingresses"}, "ingressClassName", "kubernetes.io/ingress.class",
		schema.GroupResource{Group: group, Resource: "ingressclasses"}, networkingv1.AnnotationIsDefaultIngressClass)
}

// defaultClass gives new objects of a resource the default class, unless a field of the spec or an annotation names one.
func defaultClass(resource schema.GroupResource, field, annotation string, classes schema.GroupResource, marks ...string) step {
	return step{complete: func(c *call) error {
		if !c.isNew(resource) {
			return nil
		}
		_, named, _ := unstructured.NestedFieldNoCopy(c.Object.Object, "spec", field)
		if _, annotated := c.Object.GetAnnotations()[annotation]; named || annotated {
			return nil
		}
		if class := newest(c.objects.List(classes, ""), marks); class != nil {
			return unstructured.SetNestedField(c.Object.Object, class.GetName(), "spec", field)
		}
		return nil
	}}
}

// newest returns the newest of the classes that an annotation marks as the default one, or nil.
func newest(classes []*unstructured.Unstructured, marks []string) *unstructured.Unstructured {
	marked := slices.DeleteFunc(classes, func(class *unstructured.Unstructured) bool {
		notes := class.GetAnnotations()
		return !slices.ContainsFunc(marks, func(mark string) bool { return notes[mark] == "true" })
	})
	if len(marked) == 0 {
		return nil
	}
	return slices.MinFunc(marked, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()))
	})
}
