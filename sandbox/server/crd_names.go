// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/sandbox/server/store"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// firstStatus returns the status of a new CRD, before its names are accepted.
func firstStatus(r resource) map[string]any {
	return map[string]any{
		"acceptedNames": map[string]any{"kind": "", "plural": ""}, "conditions": nil, "storedVersions": []any{r.storage},
	}
}

// accept brings the status of a CRD to its spec: the names that no other CRD of the group has, and the versions in which
// objects may be stored. A CRD is established once all its names were accepted, and stays so.
func (s *Server) accept(crd *unstructured.Unstructured) {
	status, _ := crd.Object["status"].(map[string]any)
	if status == nil {
		return
	}
	status = maps.Clone(status)
	names, reason, message := s.acceptedNames(crd, status)
	status["acceptedNames"] = names
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	stored, _ := status["storedVersions"].([]any)
	for _, item := range versions {
		if version, _ := item.(map[string]any); version["storage"] == true && !slices.Contains(stored, version["name"]) {
			status["storedVersions"] = append(slices.Clone(stored), version["name"])
		}
	}
	wasEstablished := isEstablished(crd)
	crd.Object["status"] = status
	setCRDCondition(crd, s.now(), apiextensionsv1.NamesAccepted, reason == "", cmp.Or(reason, "NoConflicts"), cmp.Or(message, "no conflicts found"))
	switch {
	case wasEstablished:
	case reason == "":
		setCRDCondition(crd, s.now(), apiextensionsv1.Established, true, "InitialNamesAccepted", "the initial names have been accepted")
	default:
		setCRDCondition(crd, s.now(), apiextensionsv1.Established, false, "NotAccepted", "not all names are accepted")
	}
}

// acceptedNames returns those names of a CRD that no other CRD of its group has, together with those which were accepted
// before, and why one was not. Several names can be taken; the last one is told, as by a real server.
func (s *Server) acceptedNames(crd *unstructured.Unstructured, status map[string]any) (names map[string]any, reason, message string) {
	names, _, _ = unstructured.NestedMap(crd.Object, "spec", "names")
	before, _ := status["acceptedNames"].(map[string]any)
	resources, kinds := s.namesBeside(crd)
	check := func(key, why string, taken map[string]bool) {
		name, _ := names[key].(string)
		if name == "" || name == before[key] || !taken[name] {
			return
		}
		reason, message = why, fmt.Sprintf("%q is already in use", name)
		delete(names, key)
		if was, found := before[key]; found {
			names[key] = was
		} else if key == "plural" || key == "kind" { // they are never absent
			names[key] = ""
		}
	}
	check("plural", "PluralConflict", resources)
	check("singular", "SingularConflict", resources)
	if taken := takenOf(names["shortNames"], before["shortNames"], resources); len(taken) > 0 {
		reason, message = "ShortNamesConflict", strings.Join(taken, ", ")
		if len(taken) > 1 {
			message = "[" + message + "]"
		}
		delete(names, "shortNames")
		if was, found := before["shortNames"]; found {
			names["shortNames"] = was
		}
	}
	check("kind", "KindConflict", kinds)
	check("listKind", "ListKindConflict", kinds)
	return names, reason, message
}

// takenOf returns what there is to say of the short names that others have.
func takenOf(names, before any, taken map[string]bool) (out []string) {
	list, _ := names.([]any)
	was, _ := before.([]any)
	for _, name := range list {
		if text, _ := name.(string); taken[text] && !slices.Contains(was, name) {
			out = append(out, fmt.Sprintf("%q is already in use", text))
		}
	}
	return out
}

// namesBeside returns the accepted names of the other CRDs of a group: those of resources and those of kinds.
func (s *Server) namesBeside(crd *unstructured.Unstructured) (resources, kinds map[string]bool) {
	resources, kinds = map[string]bool{}, map[string]bool{}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	for _, row := range s.tables[crds()].objects.In("") {
		other := row.Tree().Object
		if of, _, _ := unstructured.NestedString(other, "spec", "group"); of != group || row.Name == crd.GetName() {
			continue
		}
		names, _, _ := unstructured.NestedMap(other, "status", "acceptedNames")
		short, _ := names["shortNames"].([]any)
		for _, name := range append([]any{names["plural"], names["singular"]}, short...) {
			if text, _ := name.(string); text != "" {
				resources[text] = true
			}
		}
		for _, key := range []string{"kind", "listKind"} {
			if text, _ := names[key].(string); text != "" {
				kinds[text] = true
			}
		}
	}
	return resources, kinds
}

// setCRDCondition sets a condition of a CRD, and its time if it has changed.
func setCRDCondition(
	crd *unstructured.Unstructured, now string, kind apiextensionsv1.CustomResourceDefinitionConditionType, is bool, reason, message string,
) {
	status := crd.Object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	conditions = slices.Clone(conditions)
	next := map[string]any{"type": string(kind), "status": "False", "reason": reason, "message": message, "lastTransitionTime": now}
	if is {
		next["status"] = "True"
	}
	i := slices.IndexFunc(conditions, func(c any) bool {
		each, _ := c.(map[string]any)
		return each["type"] == next["type"]
	})
	if i < 0 {
		status["conditions"] = append(conditions, next)
		return
	}
	if was := conditions[i].(map[string]any); was["status"] == next["status"] {
		next["lastTransitionTime"] = was["lastTransitionTime"]
	}
	conditions[i] = next
	status["conditions"] = conditions
}

// isEstablished reports whether the resource of a CRD is served.
func isEstablished(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		each, _ := c.(map[string]any)
		return each["type"] == string(apiextensionsv1.Established) && each["status"] == string(apiextensionsv1.ConditionTrue)
	})
}

// acceptLater looks again at the CRDs of a group that wait for names, after those of another one have become free.
func (s *Server) acceptLater(group string) {
	if len(s.waiting(group)) == 0 {
		return
	}
	s.later(collectLag, func() {
		s.mu.Lock()
		defer s.unlock()
		s.byItself(func() { s.acceptWaiting(group) })
	})
}

// acceptWaiting serves the CRDs of a group whose names have become free.
func (s *Server) acceptWaiting(group string) {
	for _, crd := range s.waiting(group) {
		next := crd.DeepCopy()
		s.accept(next)
		if t := s.tables[crds()]; isEstablished(next) && s.redefine(next) == nil {
			s.commit(t, store.Modified, s.statusBy(apiServer, t, crd, next))
		}
	}
}

// waiting returns the CRDs of a group that wait for names.
func (s *Server) waiting(group string) (out []*unstructured.Unstructured) {
	for _, row := range s.tables[crds()].objects.In("") {
		crd := row.Tree()
		of, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		if of == group && !isEstablished(crd) && crd.GetDeletionTimestamp() == nil {
			out = append(out, crd)
		}
	}
	return out
}
