// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
)

func pods() schema.GroupResource { return schema.GroupResource{Resource: "pods"} }

// hasPart reports whether a subresource is a part of the spec of a Pod that is written apart from the rest.
func (t *table) hasPart(subresource string) bool {
	return t.name() == pods() && (subresource == "ephemeralcontainers" || subresource == "resize")
}

// partOfPod returns a Pod with the part that a request writes, and the rest of the old one.
func partOfPod(subresource string, old, next *unstructured.Unstructured) *unstructured.Unstructured {
	out := withOldMetadata(old, next)
	out.SetUID(next.GetUID())
	from, _ := next.Object["spec"].(map[string]any)
	spec, _ := old.Object["spec"].(map[string]any)
	spec = maps.Clone(spec)
	out.Object["spec"] = spec
	if subresource == "resize" {
		for _, list := range []string{"containers", "initContainers"} {
			spec[list] = resized(spec[list], from[list])
		}
		maps.DeleteFunc(spec, func(_ string, value any) bool { return value == nil })
		return out
	}
	delete(spec, "ephemeralContainers")
	if added, found := from["ephemeralContainers"]; found {
		spec["ephemeralContainers"] = added
	}
	return out
}

// resized returns containers with the resources of those that a client has sent. If these are others, it returns them as they
// are, and the check of the Pod says so.
func resized(old, sent any) any {
	before, _ := old.([]any)
	after, _ := sent.([]any)
	if len(before) != len(after) {
		return sent
	}
	var out []any
	for i := range before {
		is, _ := before[i].(map[string]any)
		next, _ := after[i].(map[string]any)
		if is["name"] != next["name"] {
			return sent
		}
		is = maps.Clone(is)
		for _, name := range []string{"resources", "resizePolicy"} {
			if delete(is, name); next[name] != nil {
				is[name] = next[name]
			}
		}
		out = append(out, is)
	}
	if out == nil {
		return old
	}
	return out
}

// reaches reports whether a request is one for the containers of a Pod: for their logs, or for a connection with them.
func (t *table) reaches(r Request) bool {
	switch name, _, _ := strings.Cut(r.Subresource, "/"); name {
	case "attach", "exec", "log", "portforward", "proxy":
		return t.name() == pods()
	}
	return false
}

// reach answers a request for the containers of a Pod. There are none, and the answer says so. A Pod without a node, and a
// wrong container, are a real server's errors.
func (s *Server) reach(t *table, r Request) (any, error) {
	if about, is := t.connection(r); is {
		asked := r
		asked.Subresource, _, _ = strings.Cut(r.Subresource, "/")
		if err := s.validated(t, asked, about); err != nil {
			return nil, err
		}
	}
	pod := t.get(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	if pod == nil {
		return nil, apierrors.NewNotFound(t.name(), r.Name)
	}
	if r.Subresource == "attach" || r.Subresource == "exec" || r.Subresource == "log" {
		if err := hasContainer(pod, r.options.Get("container")); err != nil {
			return nil, err
		}
	}
	switch node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName"); {
	case node != "":
		return nil, noContainers("Pod " + r.Name)
	case r.Subresource == "log":
		return "", nil
	case strings.HasPrefix(r.Subresource, "proxy"): // as of a real server for a Pod without an address
		return nil, apierrors.NewBadRequest("address not allowed")
	}
	return nil, apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", r.Name))
}

// connection returns what admission is asked about a request that is to be connected with a Pod: its options. Reading a log is none.
func (t *table) connection(r Request) (subject, bool) {
	name, path, _ := strings.Cut(r.Subresource, "/")
	special, found := t.special(name)
	if !found || name == "log" {
		return subject{}, false
	}
	options := map[string]any{}
	for key, values := range r.options {
		switch key {
		case "stdin", "stdout", "stderr", "tty":
			options[key] = isTrue(values[0])
		case "container", "path":
			options[key] = values[0]
		case "command":
			options[key] = textList(values)
		}
	}
	switch name {
	case "attach", "exec": // the defaults
		options["stdout"], options["stderr"] = true, true
	case "proxy":
		options["path"] = path
	}
	out := &unstructured.Unstructured{Object: options}
	out.SetGroupVersionKind(schema.GroupVersionKind(*special.kind))
	return subject{kind: out.GroupVersionKind(), operation: admission.Connect, next: out}, true
}

func textList(texts []string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = text
	}
	return out
}

// noContainers returns the error for a request that a container would answer.
func noContainers(subject string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: "NotImplemented",
		Message: subject + " cannot answer: this is a cluster in memory, and no containers run in it",
	}}
}

// hasContainer returns an error if a Pod does not have the container, or has several and none is named.
func hasContainer(pod *unstructured.Unstructured, name string) error {
	var names []string
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", list)
		for _, c := range containers {
			is, _ := c.(map[string]any)
			names = append(names, fmt.Sprint(is["name"]))
		}
	}
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	switch {
	case name == "" && len(containers) > 1:
		return apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: %s", pod.GetName(), names))
	case name != "" && !slices.Contains(names, name):
		return apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.GetName()))
	}
	return nil
}
