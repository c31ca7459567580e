// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/handwerk-dev/handwerk/dsl/guard"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// Transformation changes an object in place. See [Patch.Transform].
type Transformation func(o *unstructured.Unstructured) error

// Transform adds a function that changes the object, for changes that depend on the object's current state, such as
// an entry of a list to which others add entries, too. The function gets a copy of the object with the other
// changes of this handler and of the handlers before it. Its changes are sent with those, for exactly the version
// of the object that it got. If the object was written in the meantime, the function runs again on the new version.
// So it must have no side effects, and must make no change when the object already is as desired. If the handler's
// view, or a field or entry that the function changes, is among what was written, the handler runs again instead.
//
// The function may change spec and other user fields, status, labels, annotations, owner references and finalizers,
// but no bookkeeping. Its error is an error of the handler: the changes of all Transform functions are dropped, and
// the rest of the patch is sent. If the cache holds a part of each object, as with [Resource.Keep] or [Reads], the
// function gets that part, and may change nothing else.
func (p *Patch) Transform(fn Transformation) { p.Transforms = append(p.Transforms, fn) }

// JSONOp is an operation of a JSON patch (RFC 6902).
type JSONOp struct {
	// Op is add, remove, replace, move, copy or test.
	Op string
	// Path, and From for move and copy, are JSON pointers, as in /spec/hosts/0 or /metadata/labels/app.kubernetes.io~1name.
	Path, From string
	// Value is for add, replace and test.
	Value any
}

// MarshalJSON writes the operation in the form of RFC 6902.
func (o JSONOp) MarshalJSON() ([]byte, error) {
	out := map[string]any{"op": o.Op, "path": o.Path}
	switch o.Op {
	case "move", "copy":
		out["from"] = o.From
	case "add", "replace", "test":
		out["value"] = o.Value
	}
	return json.Marshal(out)
}

// JSON changes the object by operations of a JSON patch, all of them or none, as [Patch.Transform] does: on the
// current object, and again if it was written in the meantime. If an operation fails, as a failed test, the handler
// fails and is retried. If an operation is invalid, the handler fails for good.
func (p *Patch) JSON(ops ...JSONOp) {
	for i, op := range ops {
		if known := []string{"add", "remove", "replace", "move", "copy", "test"}; !slices.Contains(known, op.Op) {
			p.note(fmt.Errorf("reading JSON patch: operation %d: unknown op %q (want %s)", i, op.Op, strings.Join(known, ", ")))
			return
		}
	}
	data, err := json.Marshal(ops)
	if err != nil {
		p.note(fmt.Errorf("encoding JSON patch: %w", err))
		return
	}
	operations, err := jsonpatch.DecodePatch(data)
	if err != nil {
		p.note(fmt.Errorf("reading JSON patch: %w", err))
		return
	}
	p.Transform(func(o *unstructured.Unstructured) error {
		before, err := o.MarshalJSON()
		if err != nil {
			return fmt.Errorf("encoding object: %w", err)
		}
		after, err := operations.Apply(before)
		if err != nil {
			return fmt.Errorf("applying JSON patch: %w", err)
		}
		var tree map[string]any
		if err := utiljson.Unmarshal(after, &tree); err != nil {
			return fmt.Errorf("decoding object: %w", err)
		}
		o.Object = tree
		return nil
	})
}

// Transformed returns the patch with its transformations replaced by their changes of an object, which has the
// patch's other changes already. The object is not modified. The error is that of a transformation.
func (p *Patch) Transformed(laid *unstructured.Unstructured) (*Patch, error) {
	out := NewPatch()
	bare := *p
	bare.Transforms = nil
	out.Join(&bare)
	at := laid.DeepCopy()
	for _, fn := range p.Transforms {
		var err error
		broke := guard.Call("function", func() { err = transform(fn, at) })
		if err = cmp.Or(broke, err); err != nil {
			return nil, fmt.Errorf("transforming the object: %w", err)
		}
	}
	over, err := changed(laid, at)
	if err != nil {
		return nil, Permanent(fmt.Errorf("transforming the object: %w", err))
	}
	out.Join(over)
	return out, nil
}

func transform(fn Transformation, o *unstructured.Unstructured) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v (%s)", p, panicked())
		}
	}()
	return fn(o)
}

// panicked returns the place of the panic that is being recovered.
func panicked() string {
	var callers [32]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	for begun := false; ; {
		frame, more := frames.Next()
		if begun && !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
		}
		begun = begun || frame.Function == "runtime.gopanic"
		if !more {
			return "an unknown place"
		}
	}
}

// changed returns the changes from one object to another, or an error if handlers may not make them.
func changed(from, to *unstructured.Unstructured) (*Patch, error) {
	metadata, isMap := to.Object["metadata"].(map[string]any)
	if !isMap {
		return nil, errors.New("it has no metadata any more")
	}
	if metadata["annotations"] == nil && from.GetAnnotations() != nil {
		metadata["annotations"] = map[string]any{} // each annotation separately, because some stay
	}
	change := plain.Difference(from.Object, to.Object)
	out := NewPatch()
	if status, changes := change["status"]; changes {
		fields, isMap := status.(map[string]any)
		if !isMap && status != nil {
			return nil, errors.New("changing status: it is not a map")
		}
		before, _ := from.Object["status"].(map[string]any)
		if status == nil {
			fields = plain.Difference(before, nil)
		}
		out.Status = fields
		delete(change, "status")
	}
	for _, key := range []string{"apiVersion", "kind"} {
		if _, changes := change[key]; changes {
			return nil, fmt.Errorf("changing %s: an object keeps it", key)
		}
	}
	if inner, changes := change["metadata"].(map[string]any); changes {
		if err := meant(from, inner, "labels", "ownerReferences", "finalizers"); err != nil {
			return nil, err
		}
		if len(inner) == 0 {
			delete(change, "metadata")
		}
	}
	out.Object = change
	return out, nil
}
