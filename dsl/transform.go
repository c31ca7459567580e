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

// Transform has a function change the object, for what no value alone can say, as an entry of a list to which others add
// entries, too. It gets a copy of the object as it is, with all else that this handler and those before it want. What it
// changes is sent with everything else, to the very version of the object that it was worked out from. When somebody has
// written meanwhile, the function runs again, on what is there then; so it must do no more than change its argument, and
// the same when that is done already. Where the handler's view has changed, or an entry or field that the function
// changes, the handler runs again instead.
//
// It may change spec and all else that is the user's, status, and labels, annotations, owner references and finalizers;
// bookkeeping stays. An error of it is one of the handler: what the functions were to change is not sent, the rest of the
// patch is. Where the cache does not hold the whole object, it is read from the API server for them, once in a pass.
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

// MarshalJSON writes the operation as RFC 6902 has it.
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

// JSON changes the object by operations of a JSON patch, all of them or none, as [Patch.Transform] does: on the object as
// it is, and again after somebody else has written. An operation that cannot be done, as a test that fails, is an error of the
// handler, which is tried again; one that there is not fails it for good.
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

// Transformed returns the patch with what its transformations make of an object in their place. The object has all else
// that the patch wants already; it is not changed. The error is that of a transformation.
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

// panicked says where the code panicked that is recovered from.
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
			return "nobody knows where"
		}
	}
}

// changed returns what makes of one object another, where a handler may want that.
func changed(from, to *unstructured.Unstructured) (*Patch, error) {
	metadata, isMap := to.Object["metadata"].(map[string]any)
	if !isMap {
		return nil, errors.New("it has no metadata any more")
	}
	if metadata["annotations"] == nil && from.GetAnnotations() != nil {
		metadata["annotations"] = map[string]any{} // each by itself, for some stay
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
