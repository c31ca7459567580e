// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// rootCA is the ConfigMap with the certificate of the API server that each namespace has.
const rootCA = "kube-root-ca.crt"

// aboutRootCA says in that ConfigMap for what it is.
const aboutRootCA = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP " +
	"or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."

func serviceAccounts() schema.GroupResource { return schema.GroupResource{Resource: "serviceaccounts"} }

func configMaps() schema.GroupResource { return schema.GroupResource{Resource: "configmaps"} }

// settle stores a new namespace as a real server has it.
func (s *Server) settle(t *table, o *unstructured.Unstructured) *unstructured.Unstructured {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[corev1.LabelMetadataName] = o.GetName()
	o.SetLabels(labels)
	if held := heldBy(o); !slices.Contains(held, string(corev1.FinalizerKubernetes)) {
		holdBy(o, append(held, string(corev1.FinalizerKubernetes)))
	}
	o.Object["status"] = map[string]any{"phase": string(corev1.NamespaceActive)}
	out := s.commit(t, store.Added, o)
	if !s.dry {
		s.furnish(o.GetName())
	}
	return out
}

// furnish gives a namespace what it lacks of a ServiceAccount and a ConfigMap, as long as it stays.
func (s *Server) furnish(namespace string) {
	if s.unfurnished || s.accepts(s.tables[serviceAccounts()], namespace, "") != nil {
		return
	}
	s.add(controllerManager, serviceAccounts(), namespace, "default", map[string]any{})
	s.add(controllerManager, configMaps(), namespace, rootCA, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"kubernetes.io/description": aboutRootCA}},
		"data":     map[string]any{"ca.crt": s.certificate},
	})
}

// The programs of a real cluster that write what the server makes by itself.
const (
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
)

// add stores an object that a program of a real cluster makes, unless there is one.
func (s *Server) add(agent string, resource schema.GroupResource, namespace, name string, object map[string]any) {
	t := s.tables[resource]
	if t.get(types.NamespacedName{Namespace: namespace, Name: name}) != nil {
		return
	}
	o := &unstructured.Unstructured{Object: maps.Clone(object)}
	o.SetNamespace(namespace)
	o.SetAPIVersion(t.apiVersion(t.versions[0]))
	o.SetKind(t.kind)
	o.SetName(name)
	r := Request{Namespace: namespace, agent: agent}
	r.Resource = resource.WithVersion(t.versions[0])
	_, _ = s.create(t, r, o) // what is refused is not there, as with a real controller
}

// furnishLater makes again what the server makes by itself, after it was deleted.
func (s *Server) furnishLater(t *table, c store.Change) {
	if s.garbage == nil || c.What != store.Deleted {
		return
	}
	again := s.publish
	switch {
	case t.name() == serviceAccounts() && c.Row.Name == "default", t.name() == configMaps() && c.Row.Name == rootCA:
		again = func() { s.furnish(c.Row.Namespace) }
	case c.Row.Namespace != metav1.NamespaceDefault || c.Row.Name != ownService:
		return
	}
	s.later(collectLag, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		again()
	})
}

// terminate sets the phase of a namespace that is being deleted.
func terminate(o *unstructured.Unstructured) {
	status, _ := o.Object["status"].(map[string]any)
	status = maps.Clone(status)
	if status == nil {
		status = map[string]any{}
	}
	status["phase"] = string(corev1.NamespaceTerminating)
	o.Object["status"] = status
}

// remaining says in the conditions of a namespace that is being deleted what has stayed in it.
func (s *Server) remaining(t *table, o *unstructured.Unstructured) {
	if s.garbage == nil || t.name() != namespaces() {
		return
	}
	kinds, finalizers := map[string]int{}, map[string]int{}
	for _, c := range s.contents(t, o) {
		kinds[c.table.name().String()+suffix(c.table)]++
		for _, f := range c.object.GetFinalizers() {
			finalizers[f]++
		}
	}
	if len(kinds) == 0 {
		return
	}
	next := o.DeepCopy()
	status, _ := next.Object["status"].(map[string]any)
	status["conditions"] = conditions(kinds, finalizers, s.now())
	s.commit(t, store.Modified, s.statusBy(controllerManager, t, o, next))
}

// suffix is the dot after a resource of the core group in the words of the namespace controller.
func suffix(t *table) string {
	if t.group == "" {
		return "."
	}
	return ""
}

// conditions returns those of a namespace whose content stays, with the number of objects by kind and by finalizer.
func conditions(kinds, finalizers map[string]int, now string) []any {
	condition := func(kind corev1.NamespaceConditionType, status, reason, message string) any {
		return map[string]any{"type": string(kind), "status": status, "reason": reason, "message": message, "lastTransitionTime": now}
	}
	held := condition(corev1.NamespaceFinalizersRemaining, "False", "ContentHasNoFinalizers", "All content-preserving finalizers finished")
	if len(finalizers) > 0 {
		held = condition(corev1.NamespaceFinalizersRemaining, "True", "SomeFinalizersRemain",
			"Some content in the namespace has finalizers remaining: "+counted(finalizers, "%s in %d resource instances"))
	}
	return []any{
		condition(corev1.NamespaceDeletionDiscoveryFailure, "False", "ResourcesDiscovered", "All resources successfully discovered"),
		condition(corev1.NamespaceDeletionGVParsingFailure, "False", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
		condition(corev1.NamespaceDeletionContentFailure, "False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
		condition(corev1.NamespaceContentRemaining, "True", "SomeResourcesRemain",
			"Some resources are remaining: "+counted(kinds, "%s has %d resource instances")),
		held,
	}
}

func counted(counts map[string]int, format string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf(format, name, counts[name]))
	}
	return strings.Join(out, ", ")
}
