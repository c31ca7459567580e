// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// Patch is what a handler wants changed in its object. The engine joins those of the handlers of a
// pass, in their order, and sends them once, at the end, and nothing of it when the object is so
// already. What a handler wanted before it failed is sent too, so that it can report why; but not
// when it overran its timeout or panicked, unless it is of [Steps].
//
// Values may be anything that JSON can hold, structs included. A wrong path or value is
// remembered, and fails the handler for good when it returns.
type Patch struct {
	// Object is the merge patch of everything but status, in the sense of RFC 7386: nil removes.
	Object map[string]any
	// Status is the merge patch of the object's status.
	Status map[string]any
	// Conditions are the conditions to set, at most one of each type.
	Conditions []metav1.Condition
	// Offered are conditions that are set only where the resource's schema has status.conditions.
	Offered []metav1.Condition
	// Retired are types of conditions that are taken away, see RetireCondition.
	Retired []string
	// Replaced lead to maps in Object that are not merged into what the object has there but take its
	// place: somebody removed that before fields were set below it. ReplacedStatus are those in Status.
	Replaced, ReplacedStatus []Path

	// Transforms change the object once all else is laid on it, in this order; see [Patch.Transform].
	Transforms []Transformation `json:"-"`
	// Finished: all that it asks for is of steps that are finished, so it counts also where what came after them overran its
	// time or panicked. [Steps] sets it.
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

// OfferCondition is SetCondition for resources whose schema has status.conditions; for others
// nothing is set. Stock actions report this way, whatever resource they are used for.
func (p *Patch) OfferCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	p.Offered = withCondition(p.Offered, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
}

// RetireCondition takes the condition of this type away when it is one that this operator has left behind: the API
// server tells that the operator has set it, and none of its handlers does now. Others' conditions stay.
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

// Join lays another patch over this one. What this one removes stays removed, but for what the other
// sets below it.
func (p *Patch) Join(over *Patch) {
	p.Replaced = append(p.Replaced, join(p.Object, over.Object, over.Replaced)...)
	p.ReplacedStatus = append(p.ReplacedStatus, join(p.Status, over.Status, over.ReplacedStatus)...)
	if _, anew := over.Status["conditions"]; anew {
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

// Empty reports whether nothing is to be changed.
func (p *Patch) Empty() bool {
	return len(p.Object) == 0 && len(p.Status) == 0 && len(p.Conditions)+len(p.Offered)+len(p.Retired)+len(p.Transforms) == 0
}

// Err returns what was wrong with paths and values so far, joined.
func (p *Patch) Err() error { return errors.Join(p.faults...) }

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

// join lays one merge patch over another, which it changes, and returns where its maps take the place of
// what was removed. The two share no maps afterwards.
func join(base, over map[string]any, replaced []Path) []Path {
	for _, path := range replaced {
		_ = path.set(base, nil) // refused where base removes what is around it, which is as good
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
			continue // there is no map any more that has something to be removed
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
