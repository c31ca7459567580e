// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Patch has the changes that a handler wants in its object. The engine joins the patches of the handlers of a reconcile,
// in their order, and sends them once, at the end. It sends nothing when the object already is so. Changes that a
// handler wanted before it failed are sent, too, so that it can report why. If it overran its timeout or
// panicked, the engine keeps only the changes of finished [Steps]. A patch with a field that the cache does not hold is dropped,
// and the handler fails for good; see [Resource.Keep].
//
// Values may be anything that JSON can hold, structs included. A wrong path or value is remembered, and the handler
// fails for good when it returns.
type Patch struct {
	// Object is the merge patch of everything but status (RFC 7386): nil removes.
	Object map[string]any
	// Status is the merge patch of the object's status.
	Status map[string]any
	// Conditions are the conditions to set, at most one of each type.
	Conditions []metav1.Condition
	// Offered are conditions that are set only if the resource's schema has status.conditions.
	Offered []metav1.Condition
	// Retired are types of conditions to remove; see RetireCondition.
	Retired []string
	// Replaced are paths of maps in Object that replace the map in the object instead of being merged into it: the
	// map was removed before fields were set below it. ReplacedStatus are such paths in Status.
	Replaced, ReplacedStatus []Path

	// Transforms change the object after all other changes of the patch, in this order; see [Patch.Transform].
	Transforms []Transformation `json:"-"`
	// Finished: all changes are those of finished steps. They are therefore sent also if code after these steps
	// times out or panics. [Steps] sets it.
	Finished bool `json:"-"`

	faults []error
}

// NewPatch returns an empty patch.
func NewPatch() *Patch {
	return &Patch{Object: map[string]any{}, Status: map[string]any{}}
}

// Set sets a field outside status, as in Set("spec.volumeName", name). See [ParsePath] for the
// path.
func (p *Patch) Set(path string, value any) {
	p.put(p.Object, path, value, "status", "apiVersion", "kind")
}

// Remove removes a field outside status.
func (p *Patch) Remove(path string) { p.put(p.Object, path, nil, "status", "apiVersion", "kind") }

// Label sets a label.
func (p *Patch) Label(key, value string) {
	p.note(Path{"metadata", "labels", key}.set(p.Object, value))
}

// Annotate sets an annotation.
func (p *Patch) Annotate(key, value string) {
	p.note(Path{"metadata", "annotations", key}.set(p.Object, value))
}

// SetStatus sets a field of status; the path begins inside it, as in
// SetStatus("availableReplicas", 3).
func (p *Patch) SetStatus(path string, value any) { p.put(p.Status, path, value) }

// RemoveStatus removes a field of status.
func (p *Patch) RemoveStatus(path string) { p.put(p.Status, path, nil) }

// SetCondition sets the condition of this type in status.conditions. The transition time moves
// when the condition's status changes and only then; observedGeneration is the generation that
// the handler saw. Reason is one CamelCase word, message a sentence for a person.
func (p *Patch) SetCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	p.Conditions = withCondition(p.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
}

// OfferCondition is SetCondition for resources whose schema has status.conditions; for others, and with
// [CacheMetadata], it does nothing.
// Stock actions report this way, so that they work with any resource.
func (p *Patch) OfferCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	p.Offered = withCondition(p.Offered, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
}

// RetireCondition removes the condition of this type if this operator has left it behind: the API server says that
// this operator set it, and none of its handlers sets it now. Conditions of others stay.
func (p *Patch) RetireCondition(kind string) {
	if !slices.Contains(p.Retired, kind) {
		p.Retired = append(p.Retired, kind)
	}
}

func withCondition(list []metav1.Condition, c metav1.Condition) []metav1.Condition {
	if i := slices.IndexFunc(list, func(known metav1.Condition) bool { return known.Type == c.Type }); i >= 0 {
		list[i] = c
		return list
	}
	return append(list, c)
}

// Join adds another patch to this one. A map that this one removes stays removed, except for fields that the other
// sets below it.
func (p *Patch) Join(over *Patch) {
	p.Replaced = append(p.Replaced, join(p.Object, over.Object, over.Replaced)...)
	p.ReplacedStatus = append(p.ReplacedStatus, join(p.Status, over.Status, over.ReplacedStatus)...)
	if _, set := over.Status["conditions"]; set {
		p.Conditions, p.Offered = nil, nil
	}
	for _, c := range over.Conditions {
		p.SetCondition(c.Type, c.Status, c.Reason, c.Message)
	}
	for _, c := range over.Offered {
		p.OfferCondition(c.Type, c.Status, c.Reason, c.Message)
	}
	for _, kind := range over.Retired {
		p.RetireCondition(kind)
	}
	p.Transforms = append(p.Transforms, over.Transforms...)
}

// Empty reports whether the patch has no changes.
func (p *Patch) Empty() bool {
	return len(p.Object) == 0 && len(p.Status) == 0 && len(p.Conditions)+len(p.Offered)+len(p.Retired)+len(p.Transforms) == 0
}

// Err returns the faults of paths and values so far, joined.
func (p *Patch) Err() error { return errors.Join(p.faults...) }

// LeftOut returns an error that names the fields that the patch changes and kept leaves out. Nil keeps all fields.
// Transformations do not count.
func (p *Patch) LeftOut(kept *shape.Kept) error {
	if kept == nil {
		return nil
	}
	out := append(leftOutOf(kept, nil, p.Object), leftOutOf(kept, []string{"status"}, p.Status)...)
	if len(p.Conditions)+len(p.Offered)+len(p.Retired) > 0 {
		out = append(out, leftOutOf(kept, []string{"status"}, map[string]any{"conditions": nil})...)
	}
	for _, path := range p.Replaced {
		out = append(out, leftOutOf(kept, path[:len(path)-1], map[string]any{path[len(path)-1]: nil})...)
	}
	for _, path := range p.ReplacedStatus {
		out = append(out, leftOutOf(kept, append([]string{"status"}, path[:len(path)-1]...), map[string]any{path[len(path)-1]: nil})...)
	}
	if len(out) == 0 {
		return nil
	}
	return errors.New(kept.Leaves(firstOf(out)))
}

// leftOutOf returns the paths that a merge patch at a path changes and kept leaves out, sorted.
func leftOutOf(kept *shape.Kept, at []string, patch map[string]any) (out [][]string) {
	for _, key := range slices.Sorted(maps.Keys(patch)) {
		path := append(slices.Clip(at), key)
		below, isMap := patch[key].(map[string]any)
		switch lacks, _ := kept.Lacks(path); {
		case !lacks:
		case isMap && len(below) > 0:
			out = append(out, leftOutOf(kept, path, below)...)
		default:
			out = append(out, path)
		}
	}
	return out
}

func (p *Patch) put(tree map[string]any, text string, value any, refused ...string) {
	path, err := ParsePath(text)
	if err != nil {
		p.note(err)
		return
	}
	if slices.Contains(refused, path[0]) {
		p.note(fmt.Errorf("setting %s: %s is not set with Set", text, path[0]))
		return
	}
	decoded, err := plain.Value(value)
	if err != nil {
		p.note(fmt.Errorf("setting %s: %w", text, err))
		return
	}
	p.note(path.set(tree, decoded))
}

func (p *Patch) note(err error) {
	if err != nil {
		p.faults = append(p.faults, err)
	}
}

// join merges the merge patch over into base, and returns the paths of maps that replace removed ones. The two
// share no maps afterwards.
func join(base, over map[string]any, replaced []Path) []Path {
	for _, path := range replaced {
		_ = path.set(base, nil) // an error means that base removes an outer map, which has the same effect
	}
	return lay(nil, base, over)
}

// lay is join at a path.
func lay(at Path, base, over map[string]any) (replaced []Path) {
	for key, value := range over {
		above, isMap := value.(map[string]any)
		before, found := base[key]
		below, both := before.(map[string]any)
		path := append(slices.Clip(at), key)
		switch {
		case !isMap:
			base[key] = value
			continue
		case !both && found && plain.Removes(above):
			continue // there is no map to remove keys from
		case !both && found:
			replaced = append(replaced, path)
		}
		if !both {
			below = map[string]any{}
			base[key] = below
		}
		replaced = append(replaced, lay(path, below, above)...)
	}
	return replaced
}
