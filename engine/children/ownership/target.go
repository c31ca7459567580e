// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Target is an object in which a handler of the owner owns some fields, as the owner's inventory lists it.
type Target struct {
	Place
	// Handler and Key are as in [dsl.TargetSpec].
	Handler, Key string
	// Manager is the field manager that owns the fields. A target keeps the manager that it was patched with, whatever the
	// handler or the operator is called later.
	Manager string
}

// mostTargets is how many targets an inventory lists.
const mostTargets = 2_000

// mostManager is how many bytes the API server accepts as the name of a field manager.
const mostManager = 128

// mostOperator is how many bytes of the operator's name a shortened field manager has.
const mostOperator = 40

// TargetManager returns the field manager of a target. It is different for each owner, handler and key, and the same in
// each process.
func TargetManager(operator, handler, key string, owner types.UID) string {
	parts := []string{operator, "patch", handler}
	if key != "" {
		parts = append(parts, short(key)) // a key may be any text, of any length
	}
	name := strings.Join(append(parts, string(owner)), "/")
	if len(name) <= mostManager {
		return name
	}
	// The operator's name is at most 63 bytes, and so is the handler's id; a step makes it longer.
	return strings.Join([]string{operator[:min(len(operator), mostOperator)], "patch", short(handler + "/" + key), short(string(owner))}, "/")
}

// short returns a short digest of a text.
func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// IsTargetManager reports whether [TargetManager] makes a field manager for an operator. It excludes managers with a
// shortened operator name: another operator may have the same.
func IsTargetManager(manager, operator string) bool {
	return strings.HasPrefix(manager, operator+"/patch/") && isPatcher(manager)
}

// isPatcher reports whether a field manager has the form that [TargetManager] makes, for any operator. People and
// pipelines may have managers with similar parts.
func isPatcher(manager string) bool { return patchers.MatchString(manager) }

var patchers = regexp.MustCompile(`^[^/]+/patch/([^/]+/([0-9a-f]{16}/)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16}/[0-9a-f]{16})$`)

// IsManagerOf reports whether [TargetManager] makes a field manager for an owner. People who may write the owner may write
// its inventory, too. A target with another manager would make the operator remove what others have set.
func IsManagerOf(manager string, owner types.UID) bool {
	last := manager[strings.LastIndexByte(manager, '/')+1:]
	return strings.Contains(manager, "/patch/") && owner != "" && (last == string(owner) || last == short(string(owner)))
}

// line returns the stored form of a target. None of its parts has a space.
func (t Target) line() string {
	title := url.PathEscape(t.Handler)
	if t.Key != "" {
		title += "/" + url.PathEscape(t.Key)
	}
	return strings.Join([]string{t.String(), title, t.Manager}, " ")
}

// parseTarget parses the form that line returns, for an owner.
func parseTarget(text string, owner types.UID) (t Target, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 3 || !IsManagerOf(parts[2], owner) {
		return Target{}, false
	}
	handler, key, _ := strings.Cut(parts[1], "/")
	var faults [2]error
	t.Handler, faults[0] = url.PathUnescape(handler)
	t.Key, faults[1] = url.PathUnescape(key)
	t.Manager = parts[2]
	t.Place, ok = ParsePlace(parts[0])
	return t, ok && faults == [2]error{} && t.Handler != ""
}

func compareTargets(a, b Target) int {
	return cmp.Or(cmp.Compare(a.Handler, b.Handler), cmp.Compare(a.Key, b.Key), comparePlaces(a.Place, b.Place), cmp.Compare(a.Manager, b.Manager))
}

// parseTargets reads the stored lines of an owner's targets. The error names the first line that is
// not a target. The other lines are returned with it.
func parseTargets(lines []string, owner types.UID) ([]Target, error) {
	if len(lines) > mostTargets {
		return nil, fmt.Errorf("it has %d patched objects, and there is room for %d", len(lines), mostTargets)
	}
	var out []Target
	var fault error
	for _, text := range lines {
		if t, ok := parseTarget(text, owner); ok {
			out = append(out, t)
		} else if fault == nil {
			fault = fmt.Errorf("%.200q is no object that is patched for this one", text)
		}
	}
	slices.SortFunc(out, compareTargets)
	return slices.Compact(out), fault
}

// Targets returns the targets in the inventory, sorted by handler, key and place.
func (r *Inventory) Targets() []Target {
	if r == nil {
		return nil
	}
	return slices.Clone(r.targets)
}

// ListsTarget reports whether a target is in the inventory.
func (r *Inventory) ListsTarget(t Target) bool { return r != nil && slices.Contains(r.targets, t) }

// WithTarget returns the inventory with one more target. A new inventory begins now.
func (r *Inventory) WithTarget(now time.Time, t Target) *Inventory {
	out := r.With(now, nil)
	if at, found := slices.BinarySearchFunc(out.targets, t, compareTargets); !found {
		out.targets = slices.Insert(out.targets, at, t)
	}
	return out
}

// WithoutTarget returns the inventory without a target.
func (r *Inventory) WithoutTarget(t Target) *Inventory {
	if r == nil {
		return nil
	}
	out := r.Without()
	out.targets = slices.DeleteFunc(out.targets, func(other Target) bool { return other == t })
	return out
}

// WithoutTargets returns the inventory without all targets.
func (r *Inventory) WithoutTargets() *Inventory {
	if r == nil {
		return nil
	}
	out := r.Without()
	out.targets = nil
	return out
}

// CompletePatch completes the fields of a patch: the namespace, and values in the form in which the server stores them. The error
// is permanent: the owner may not patch such an object, or no handler may own such fields.
func (o Owner) CompletePatch(fields *unstructured.Unstructured, namespaced bool, reach dsl.Reach) error {
	if !namespaced && fields.GetNamespace() != "" {
		return o.refuse(fields, "it is cluster-scoped, and has no namespace")
	}
	if namespaced && fields.GetNamespace() == "" {
		fields.SetNamespace(o.Object.GetNamespace())
	}
	switch {
	case namespaced && fields.GetNamespace() == "":
		return o.refuse(fields, "its namespace is missing: the object that is handled has none")
	case o.Namespaced && reach != dsl.ReachCluster && fields.GetNamespace() != o.Object.GetNamespace():
		return o.refuse(fields, "it is not in the namespace of "+o.Name().Describe()+"; reach: cluster allows that")
	}
	if fault := o.fault(fields); fault != "" {
		return o.refuse(fields, fault)
	}
	encodeValues(fields)
	return nil
}

func (o Owner) refuse(fields *unstructured.Unstructured, fault string) error {
	return dsl.Permanent(fmt.Errorf("patching %s: %s", PlaceOf(fields).Describe(), fault))
}

// fault returns the reason why no handler may own some of the fields; empty if one may.
func (o Owner) fault(fields *unstructured.Unstructured) string {
	metadata, _ := fields.Object["metadata"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if !slices.Contains([]string{"name", "namespace", "labels", "annotations", "finalizers", "ownerReferences"}, key) {
			return "metadata." + key + " belongs to the API server"
		}
	}
	for _, part := range []string{"labels", "annotations"} {
		keys, _ := metadata[part].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if o.Keys.Own(key) {
				return "metadata." + part + "." + key + " belongs to the operator itself"
			}
		}
	}
	finalizers, _ := metadata["finalizers"].([]any)
	for _, one := range finalizers {
		if text, _ := one.(string); o.Keys.Own(text) {
			return "the finalizer " + text + " belongs to the operator itself"
		}
	}
	more := maps.Clone(metadata)
	delete(more, "name")
	delete(more, "namespace")
	if len(fields.Object) == 3 && len(more) == 0 { // apiVersion, kind and metadata
		return "there is no field to own"
	}
	return ""
}
