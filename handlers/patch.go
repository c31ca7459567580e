// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	keep "github.com/handwerk-dev/handwerk/handlers/apply"
)

// patchAction is the action's name.
const patchAction = "patch"

// patch owns fields of an object that is no child.
func patch(cel compilerOf) actions.Action {
	return actions.Action{
		Name:      patchAction,
		Doc:       "Own some fields of an object that is no child, by server-side apply, and give them back when they are not wanted any more.",
		OneObject: true,
		Includes:  true,
		Config:    func() any { return new(patchConfig) },
		Build: func(b actions.Build, config any) (actions.Built, error) {
			return buildPatch(cel, b, config.(*patchConfig))
		},
	}
}

// patcher is a compiled patch. It is read-only once it is made.
type patcher struct {
	*writer
	spec dsl.TargetSpec
	// at is the place of the template in the handler.
	at       []string
	template *expr.Template
	// kind is empty if it is computed.
	kind schema.GroupVersionKind
	// include says whether the fields are wanted, with its own parameters; nil means that they are.
	include       *expr.Program
	includeParams dsl.Params
}

func buildPatch(cel compilerOf, b actions.Build, config *patchConfig) (actions.Built, error) {
	w, err := newWriter(cel, b)
	if err != nil {
		return actions.Built{}, err
	}
	p := &patcher{writer: w, at: config.at(), spec: dsl.TargetSpec{Handler: b.ID, Force: config.Force, Reach: config.Reach}}
	if b.AtDeletion {
		p.fault([]string{patchAction}, "a handler of deletions cannot patch: what is patched is given back when its owner is deleted")
	}
	if config.Template.value != nil {
		p.read(config.Template.value)
	}
	p.included(b)
	if err := errors.Join(p.faults...); err != nil {
		return actions.Built{}, err
	}
	out := p.built(p.run)
	out.Reads, out.Patches = p.reads, []string{b.ID}
	if out.Needs = p.rights(); p.kind.Empty() {
		out.Needs = nil // they are not known
	}
	return out, nil
}

// included takes the handler's includeWhen.
func (p *patcher) included(b actions.Build) {
	if b.IncludeWhen == nil {
		return
	}
	program := b.IncludeWhen.Program
	p.include, p.includeParams = program.Observed("includeWhen", b.Registry.Branches(b.Resource, b.ID)), b.IncludeWhen.Params
	p.reads = p.reads.And(program.Reads())
}

// rights returns the rights on the target: to read it, and to patch it.
func (p *patcher) rights() []dsl.Need {
	need := dsl.Need{Verbs: []string{"get", "patch"}, Kind: p.kind}
	metadata := entry(p.template, "metadata")
	if name, plain := plainText(entry(metadata, "name")); plain {
		need.Names = []string{name}
	}
	if namespace, plain := plainText(entry(metadata, "namespace")); plain {
		need.Namespace = namespace
	}
	return []dsl.Need{need}
}

// run is the handler. Nothing is to be done for an object that is being deleted: the engine gives back what is patched.
func (p *patcher) run(ctx context.Context, r *dsl.Request) error {
	if r.Cause == dsl.Delete || r.Object.GetDeletionTimestamp() != nil {
		return nil
	}
	scope := p.objectScope(r.Subject)
	if dsl.MayBeSecret(p.kind) {
		scope = scope.OfSecret()
	}
	if p.include != nil {
		of := scope
		of.Params = p.includeParams
		wanted, err := p.include.Bool(of)
		switch {
		case err != nil:
			return p.missing(fmt.Errorf("evaluating includeWhen: %w", err), p.include)
		case !wanted:
			return errors.Join(r.Targets.GiveBack(ctx, p.spec.Handler, ""), p.endEntries(ctx, r))
		}
	}
	if r.Secrets.Read && r.Secrets.In(expr.ReadsOf(p.naming()...).Values) {
		return dsl.Permanent(errors.New("patching object: its kind, namespace and name cannot come from a Secret, because its owner's inventory shows them"))
	}
	fields, err := p.template.Render(scope)
	if err != nil {
		return p.missing(fmt.Errorf("patching object: %w", err), p.template.Programs()...)
	}
	if tree, is := fields.(map[string]any); is {
		if err := keep.CheckData(p.template, tree, r.Secrets); err != nil {
			object := &unstructured.Unstructured{Object: tree}
			return fmt.Errorf("patching %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	_, err = r.Targets.Patch(ctx, fields, p.spec)
	return withLost(err, p.endEntries(ctx, r))
}

// endEntries gives back what entries have patched, where an earlier version of the handler had forEach.
func (p *patcher) endEntries(ctx context.Context, r *dsl.Request) error {
	var failed []error
	for _, key := range r.Targets.Keys(p.spec.Handler) {
		if key != "" {
			failed = append(failed, r.Targets.GiveBack(ctx, p.spec.Handler, key))
		}
	}
	return errors.Join(failed...)
}

// missing makes a wait of an error about a value that other objects may bring.
func (p *patcher) missing(err error, programs ...*expr.Program) error {
	others := func(one *expr.Program) bool {
		return one.Uses(expr.Children) || one.Uses(expr.Related) || one.Uses(expr.Indexes)
	}
	if errors.Is(err, expr.ErrMissing) && slices.ContainsFunc(programs, others) {
		return dsl.Waiting("what it takes from other objects: "+err.Error(), 0)
	}
	return err
}

// naming returns the expressions that say which object is patched.
func (p *patcher) naming() (out []*expr.Program) {
	metadata := entry(p.template, "metadata")
	if metadata == nil || len(metadata.Entries) == 0 {
		return p.template.Programs()
	}
	for _, t := range []*expr.Template{entry(p.template, "apiVersion"), entry(p.template, "kind"), entry(metadata, "name"), entry(metadata, "namespace")} {
		if t != nil {
			out = append(out, t.Programs()...)
		}
	}
	return out
}

// schemaOf returns the schema of the target; nil if it is not known.
func (p *patcher) schemaOf(s shape.Schemas) *spec.Schema {
	if s.OfKind == nil || p.kind.Empty() {
		return nil
	}
	return s.OfKind(p.kind)
}

// entry returns the value of a key of a template; nil if it is missing or the key is computed.
func entry(t *expr.Template, key string) *expr.Template {
	if t == nil {
		return nil
	}
	for i := range t.Entries {
		if e := &t.Entries[i]; len(e.Key.Pieces) == 0 && e.Key.Plain == key {
			return &e.Value
		}
	}
	return nil
}

// plainText returns a text without expressions.
func plainText(t *expr.Template) (string, bool) {
	if t == nil || len(t.Pieces) > 0 {
		return "", false
	}
	text, is := t.Plain.(string)
	return text, is
}
