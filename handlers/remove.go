// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// remove deletes objects: the handled one, or the value of an expression.
func remove(cel compilerOf) actions.Action {
	return actions.Action{
		Name:   "delete",
		Doc:    "Delete what an expression gives, an object or a list: ${self}, or in a schedule some of objects. Each is deleted only if it still is the same one.",
		Config: func() any { return new(string) }, Objects: true,
		Build: func(b actions.Build, config any) (actions.Built, error) {
			return buildRemove(cel, b, *config.(*string))
		},
	}
}

func buildRemove(cel compilerOf, b actions.Build, what string) (actions.Built, error) {
	w, err := newWriter(cel, b)
	if err != nil {
		return actions.Built{}, err
	}
	w.named = true
	t := w.template(what, objectOrList, "delete")
	if t != nil && len(t.Programs()) == 0 {
		w.fault([]string{"delete"}, "want an expression such as ${self}, found %q", what)
	}
	if t != nil {
		w.needs = removalNeeds(t, b.ResourceWide)
	}
	if err := errors.Join(w.faults...); err != nil {
		return actions.Built{}, err
	}
	return w.built(func(ctx context.Context, r *dsl.Request) error {
		return deleteAll(ctx, r, b.Resource, t, w.scope(r.Subject))
	}), nil
}

// removalNeeds returns the rights to delete the objects of an expression: the children and related objects that it
// selects, the resource's own objects in a schedule, and otherwise the object itself. For an expression that mixes
// these, as ${[self, children.a]}, the right on the object itself is missing.
func removalNeeds(t *expr.Template, whole bool) []dsl.Need {
	needs := []dsl.Need{}
	for _, p := range t.Programs() {
		children, _ := p.Children()
		for _, name := range children {
			needs = append(needs, dsl.Need{Verbs: []string{"delete"}, Child: name})
		}
		relations, _ := p.Related()
		for _, name := range relations {
			needs = append(needs, dsl.Need{Verbs: []string{"delete"}, Relation: name})
		}
	}
	if len(needs) == 0 && (whole || t.Uses(expr.Self)) {
		needs = append(needs, dsl.MustParseNeed("delete", "self"))
	}
	return needs
}

// objectOrList returns the schema of values that can be deleted.
func objectOrList(shape.Schemas) *spec.Schema {
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object", "array"}}}
}

// deleteAll deletes the objects of the template. If one cannot be deleted, it goes on with the others.
func deleteAll(ctx context.Context, r *dsl.Request, own dsl.ResourceName, t *expr.Template, scope expr.Scope) error {
	value, err := t.Render(scope)
	if err != nil {
		return err
	}
	list, many := value.([]any)
	switch {
	case value == nil || value == expr.None:
		return nil
	case !many:
		list = []any{value}
	}
	var faults []error
	for _, one := range list {
		if err := deleteOne(ctx, r, own, one); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

func deleteOne(ctx context.Context, r *dsl.Request, own dsl.ResourceName, value any) error {
	tree, ok := value.(map[string]any)
	if !ok {
		return dsl.Permanent(errors.New("deleting: want objects, and the value is not an object"))
	}
	if len(tree) == 0 {
		return nil // a missing child or related object
	}
	o := &unstructured.Unstructured{Object: tree}
	if o.GetKind() == "" || o.GetName() == "" || o.GetUID() == "" {
		return dsl.Permanent(errors.New("deleting: want whole objects, as self, children and related have them (this one has no kind, name or uid)"))
	}
	if o.GetDeletionTimestamp() != nil {
		return nil
	}
	var err error
	if o.GroupVersionKind().GroupKind() == r.Object.GroupVersionKind().GroupKind() {
		err = r.Client.Delete(ctx, own.String(), o.GetNamespace(), o.GetName(), string(o.GetUID()))
	} else {
		err = r.Client.DeleteObject(ctx, o)
	}
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or the name belongs to another object
	}
	return fmt.Errorf("deleting %s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
}
