// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// stale returns warnings of CRDs in files of the configuration, or beside it, that are not those that the configuration
// describes: somebody may apply them.
func stale(op *dsl.Operator, paths []string) (warnings source.Faults) {
	own := map[string]map[string]any{}
	for _, crd := range crdsOf(op) {
		own[(&unstructured.Unstructured{Object: crd}).GetName()] = crd
	}
	if len(own) == 0 {
		return nil
	}
	for _, file := range source.Beside(paths) {
		objects, err := source.Objects(file)
		if err != nil {
			continue // it may be for another program
		}
		for _, o := range objects {
			made := own[o.GetName()]
			if made == nil || o.GetKind() != "CustomResourceDefinition" {
				continue
			}
			if at := differing("spec", made["spec"], o.Object["spec"]); at != "" {
				warnings = append(warnings, source.Fault{File: file, Warning: true, Message: fmt.Sprintf(
					"the CRD %s is not the one that the configuration describes: another %s (operator crd prints the one that is)", o.GetName(), at)})
			}
		}
	}
	return warnings
}

// differing returns the path of the first difference between two values; empty if they are equal.
func differing(at string, a, b any) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	before, isMap := a.(map[string]any)
	after, areMaps := b.(map[string]any)
	if isMap && areMaps {
		all := maps.Clone(before)
		maps.Copy(all, after)
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if found := differing(at+"."+key, before[key], after[key]); found != "" {
				return found
			}
		}
	}
	first, isList := a.([]any)
	second, areLists := b.([]any)
	if isList && areLists && len(first) == len(second) {
		for i := range first {
			if found := differing(at+"["+strconv.Itoa(i)+"]", first[i], second[i]); found != "" {
				return found
			}
		}
	}
	return at
}

// crdsBeside returns the CRDs in files of the configuration, or beside it.
func crdsBeside(paths []string) (out []map[string]any) {
	for _, file := range source.Beside(paths) {
		objects, err := source.Objects(file)
		if err != nil {
			continue // it may be for another program
		}
		for _, o := range objects {
			if o.GetKind() == "CustomResourceDefinition" {
				out = append(out, o.Object)
			}
		}
	}
	return out
}
