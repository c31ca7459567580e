// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// NotesRelated declares a relation to ConfigMaps and a handler, see, that notes what it selects.
func NotesRelated(relation dsl.Relation, causes ...dsl.Cause) func(foo *dsl.Resource, j *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) {
		relation.Name = "them"
		if relation.Resource.Resource == "" {
			relation.Resource = dsl.ResourceName{Resource: "configmaps", Version: "v1"}
		}
		foo.Relates(relation)
		foo.On(causes, "see", func(_ context.Context, r *dsl.Request) error {
			var line strings.Builder
			fmt.Fprintf(&line, "%s %s:", r.Object.GetName(), r.Cause)
			found, err := r.Related.Get("them")
			for _, o := range found {
				value, _, _ := unstructured.NestedString(o.Object, "data", "v")
				fmt.Fprintf(&line, " %s/%s=%s", o.GetNamespace(), o.GetName(), value)
				o.Object["data"] = "spoilt"
			}
			if err != nil {
				line.WriteString(" error")
			}
			j.Add(line.String())
			return err
		}, dsl.WithBackoff(24*time.Hour, 24*time.Hour))
	}
}

// RelatedByName selects the ConfigMap that spec.ref names, in the object's namespace.
func RelatedByName(r *dsl.Subject) (dsl.Selection, error) {
	name, _, err := unstructured.NestedString(r.Object.Object, "spec", "ref")
	return dsl.Selection{Namespace: r.Object.GetNamespace(), Names: []string{name}}, err
}

// RelatedByLabel selects the ConfigMaps of the namespace that have the object's name as their label app.
func RelatedByLabel(r *dsl.Subject) (dsl.Selection, error) {
	return dsl.Selection{Namespace: r.Object.GetNamespace(), Labels: labels.SelectorFromSet(labels.Set{"app": r.Object.GetName()})}, nil
}
