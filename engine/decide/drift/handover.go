// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Handover has the fields of an object that change hands before a field manager applies a template.
type Handover struct {
	// Released are fields that the manager gives up because the template lacks them. Their values stay; an apply alone would
	// remove them.
	Released *fieldpath.Set
	// Claimed are values without a manager that the template excludes. The manager takes them, so that the apply removes them.
	Claimed *fieldpath.Set
}

// HandoverOf returns the fields of an object that change hands before a field manager applies desired. Kept are the fields
// whose values stay when desired lacks them.
func HandoverOf(desired, live *unstructured.Unstructured, manager string, kept ...dsl.Path) Handover {
	out := Handover{Released: fieldpath.NewSet(), Claimed: fieldpath.NewSet()}
	own, others := managersOf(live, manager)
	for _, path := range kept {
		at := pathOf(path)
		if value, _ := path.In(desired.Object); value == nil && own.Has(at) && !others.Has(at) {
			out.Released.Insert(at)
		}
	}
	all := own.Union(others)
	for _, at := range excluded(desired, live, own) {
		if !hasWithin(all, at) {
			out.Claimed.Insert(at)
		}
	}
	return out
}

// Empty reports whether no field changes hands.
func (h Handover) Empty() bool { return h.Released.Empty() && h.Claimed.Empty() }

// Entries returns the managedFields of an object after the handover. Changed is false if there is nothing to hand over, or if the
// manager has applied the object in another version, whose fields may have other names.
func (h Handover) Entries(live *unstructured.Unstructured, manager string) (entries []metav1.ManagedFieldsEntry, changed bool) {
	entries = live.GetManagedFields()
	at := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return appliedBy(e, manager) })
	if at >= 0 && entries[at].APIVersion != live.GetAPIVersion() {
		h.Claimed = fieldpath.NewSet()
	}
	if h.Empty() {
		return nil, false
	}
	if at < 0 {
		at = len(entries)
		entries = append(entries, NewEntry(manager, live.GetAPIVersion()))
	}
	fields := FieldsOf(entries[at]).Difference(h.Released).Union(h.Claimed)
	if fields.Empty() {
		return slices.Delete(entries, at, at+1), true
	}
	entries[at].FieldsV1 = Encoded(fields)
	return entries, true
}

// NewEntry returns an entry of managedFields for an apply, without fields.
func NewEntry(manager, apiVersion string) metav1.ManagedFieldsEntry {
	now := metav1.Now()
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: apiVersion, Time: &now, FieldsType: "FieldsV1",
	}
}

// Encoded returns the fields of an entry.
func Encoded(fields *fieldpath.Set) *metav1.FieldsV1 {
	data, err := fields.ToJSON()
	if err != nil {
		data = []byte("{}") // not reached: it was read from JSON
	}
	return metav1.NewFieldsV1(string(data))
}

// Left reports whether a child differs from its template only in lists that have further entries, and whose fields still
// belong to the operator alone. If the template is the one that was applied last, admission has added the entries.
func (q Question) Left() bool {
	own := func(manager string) bool { return manager == q.Manager }
	other := func(path dsl.Path) bool {
		want, _ := path.In(q.Desired.Object)
		has, _ := path.In(q.Live.Object)
		wanted, isList := want.([]any)
		existing, _ := has.([]any)
		return !isList || !q.extends(wanted, existing) || !q.has(q.Managed, path, true, own)
	}
	return !slices.ContainsFunc(q.differing(), other)
}

// extends reports whether a list has all wanted entries in their order, and others.
func (q Question) extends(want, has []any) bool {
	k := knowing(q.Desired.GroupVersionKind().GroupKind())
	for _, entry := range has {
		if len(want) > 0 && k.covers("", want[0], entry, false) {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// MayHandOver reports whether an object has values that change hands if a field manager applies desired, as far as that is known
// without the managedFields.
func MayHandOver(desired, live *unstructured.Unstructured, kept ...dsl.Path) bool {
	drops := func(path dsl.Path) bool {
		wanted, _ := path.In(desired.Object)
		has, _ := path.In(live.Object)
		return wanted == nil && has != nil
	}
	return slices.ContainsFunc(kept, drops) || len(excluded(desired, live, nil)) > 0
}

// managersOf returns the fields that a manager has applied to an object, and the fields of all other entries.
func managersOf(live *unstructured.Unstructured, manager string) (own, others *fieldpath.Set) {
	own, others = fieldpath.NewSet(), fieldpath.NewSet()
	for _, e := range live.GetManagedFields() {
		if appliedBy(e, manager) {
			own = own.Union(FieldsOf(e))
		} else {
			others = others.Union(FieldsOf(e))
		}
	}
	return own, others
}

// hasWithin reports whether a path, or something in it, is in a set of fields.
func hasWithin(fields *fieldpath.Set, path fieldpath.Path) bool {
	for i, each := range path {
		below, deeper := fields.Children.Get(each)
		if i == len(path)-1 && (deeper || fields.Members.Has(each)) {
			return true
		}
		if !deeper {
			return false
		}
		fields = below
	}
	return false
}

func pathOf(path dsl.Path) (out fieldpath.Path) {
	for _, key := range path {
		out = append(out, fieldpath.FieldNameElement(key))
	}
	return out
}

// excluded returns the values of an object that the template lacks and that may not stay beside it. Kubernetes marks such
// places with patchStrategy retainKeys; server-side apply does not know the mark. Own are the fields of the manager; nil if they
// are not known.
func excluded(desired, live *unstructured.Unstructured, own *fieldpath.Set) (out []fieldpath.Path) {
	kind := desired.GroupVersionKind().GroupKind()
	if strategy := strategyOf(kind); strategy != nil {
		want, has := mapAt(desired, strategy), mapAt(live, strategy)
		if want["type"] != nil && has["type"] != want["type"] {
			out = append(out, rest(pathOf(strategy), want, has)...)
		}
	}
	spec := podSpecOf(kind)
	if spec == nil {
		return out
	}
	want, has := mapAt(desired, spec), mapAt(live, spec)
	out = append(out, excludedSources(append(pathOf(spec), fieldpath.FieldNameElement("volumes")), want["volumes"], has["volumes"])...)
	return append(out, excludedAlias(pathOf(spec), want, has, own)...)
}

// excludedSources returns the sources of volumes for which the template has another source. A volume without a source is an
// emptyDir.
func excludedSources(at fieldpath.Path, want, has any) (out []fieldpath.Path) {
	wanted, _ := want.([]any)
	existing, _ := has.([]any)
	for _, entry := range wanted {
		volume, _ := entry.(map[string]any)
		name, _ := volume["name"].(string)
		i := slices.IndexFunc(existing, func(other any) bool {
			is, _ := other.(map[string]any)
			return name != "" && is["name"] == name
		})
		if i < 0 {
			continue
		}
		now := existing[i].(map[string]any)
		for source := range volume {
			if _, same := now[source]; !same {
				out = append(out, rest(append(slices.Clip(at), fieldpath.PathElement{Key: fieldpath.KeyByFields("name", name)}), volume, now)...)
				break
			}
		}
	}
	return out
}

// excludedAlias returns the deprecated serviceAccount, which the server makes from serviceAccountName, and from which it makes
// serviceAccountName again if the template drops that.
func excludedAlias(at fieldpath.Path, want, has map[string]any, own *fieldpath.Set) []fieldpath.Path {
	const name, alias = "serviceAccountName", "serviceAccount"
	dropped := want[name] == nil && want[alias] == nil && has[alias] != nil
	if !dropped || own != nil && !own.Has(append(slices.Clip(at), fieldpath.FieldNameElement(name))) {
		return nil
	}
	return []fieldpath.Path{append(slices.Clip(at), fieldpath.FieldNameElement(alias))}
}

// rest returns the paths of the members that the template does not have.
func rest(at fieldpath.Path, want, has map[string]any) (out []fieldpath.Path) {
	for key := range has {
		if _, wanted := want[key]; !wanted {
			out = append(out, append(slices.Clip(at), fieldpath.FieldNameElement(key)))
		}
	}
	return out
}

// strategyOf returns where a kind has a strategy, whose type excludes the parameters of other types.
func strategyOf(kind schema.GroupKind) dsl.Path {
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		return dsl.Path{"spec", "strategy"}
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		return dsl.Path{"spec", "updateStrategy"}
	}
	return nil
}

// podSpecOf returns where a built-in kind has the spec of its pods; nil for a kind without.
func podSpecOf(kind schema.GroupKind) dsl.Path {
	switch kind.String() {
	case "Pod":
		return dsl.Path{"spec"}
	case "PodTemplate":
		return dsl.Path{"template", "spec"}
	case "CronJob.batch":
		return dsl.Path{"spec", "jobTemplate", "spec", "template", "spec"}
	case "ReplicationController", "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps", "Job.batch":
		return dsl.Path{"spec", "template", "spec"}
	}
	return nil
}

func mapAt(o *unstructured.Unstructured, path dsl.Path) map[string]any {
	value, _ := path.In(o.Object)
	out, _ := value.(map[string]any)
	return out
}
