// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// checkDump returns an error if a dump has neither an object that the operator handles nor the CRD of one: it is a dump of something else.
func checkDump(op *dsl.Operator, objects []*unstructured.Unstructured) error {
	var names []string
	for _, r := range op.Handled() {
		names = append(names, r.Name.String())
		crd := r.Name.Resource + "." + r.Name.Group
		if slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "CustomResourceDefinition" && o.GetName() == crd || isOf(o, r.Name)
		}) {
			return nil
		}
	}
	return fmt.Errorf("reading objects: none of the %d objects is of a resource that the operator handles (%s), or the CRD of one", len(objects), strings.Join(names, ", "))
}

// isOf reports whether an object is of a resource, as far as its kind says: the plural of most kinds is regular.
func isOf(o *unstructured.Unstructured, name dsl.ResourceName) bool {
	plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	return plural.Group == name.Group && plural.Resource == name.Resource
}

// missingKinds returns a warning for each kind of children that has no object in a dump.
func missingKinds(op *dsl.Operator, objects []*unstructured.Unstructured) (warnings []string) {
	for _, r := range op.Handled() {
		for _, kind := range r.Owned() {
			has := func(o *unstructured.Unstructured) bool { return o.GroupVersionKind().GroupKind() == kind.GroupKind() }
			text := fmt.Sprintf("the dump has no %s; one that exists in the cluster is planned as a new one", kind.Kind)
			if kind.Kind != "" && !slices.ContainsFunc(objects, has) && !slices.Contains(warnings, text) {
				warnings = append(warnings, text)
			}
		}
	}
	return warnings
}

// pausesIn returns a warning for each pause among the objects: the plan lacks the changes that come when it ends.
func pausesIn(op *dsl.Operator, objects []*unstructured.Unstructured) (warnings []string) {
	key := op.PausedAnnotation()
	for _, o := range objects {
		reason, paused := o.GetAnnotations()[key]
		switch {
		case o.GetKind() == "ConfigMap" && slices.Contains(op.PauseConfigMaps(), o.GetName()):
			warnings = append(warnings, "the operator is paused, so the plan has only deletions at most; operator resume ends the pause")
		case paused:
			warnings = append(warnings, fmt.Sprintf("%s is paused (%s): its changes come when it is resumed", nameOf(o.GetKind(), o.GetNamespace(), o.GetName()), reason))
		}
	}
	return warnings
}
