// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/decide/drift"
)

// Renewer rewrites an operator's own entries in the managedFields of objects whose CRD has dropped their version. The
// API server rejects every apply to such an object, from anybody.
type Renewer struct {
	kinds Kinds
	// managers are the operator's field managers under all its names, the current one first.
	managers []string
}

// Kinds finds the resource of an apiVersion and kind; see [discovery.Catalog.KindOf].
type Kinds interface {
	KindOf(ctx context.Context, gvk schema.GroupVersionKind) (discovery.Resource, error)
}

// NewRenewer returns the renewer of an operator.
func NewRenewer(op *dsl.Operator, kinds Kinds) *Renewer {
	r := &Renewer{kinds: kinds, managers: []string{op.Name}}
	for _, earlier := range op.Earlier() {
		r.managers = append(r.managers, earlier.Name)
	}
	return r
}

// isOwn reports whether a field manager belongs to the operator, to one of its patches or to its marks.
func (r *Renewer) isOwn(manager string) bool {
	return slices.ContainsFunc(r.managers, func(name string) bool { return manager == name || strings.HasPrefix(manager, name+"/") })
}

// RenewRejected renews the own entries of an object if an apply to it ended with an error because of them. It returns the
// renewed object, to which the apply can be sent again, or nil and the error. An error about entries of others says how
// to remove them. An empty uid matches any object of the name.
func (r *Renewer) RenewRejected(ctx context.Context, c dynamic.ResourceInterface, name string, uid types.UID, said error) (*unstructured.Unstructured, error) {
	refused, is := drift.RejectedVersion(said)
	if !is {
		return nil, said
	}
	live, err := c.Get(ctx, name, metav1.GetOptions{})
	if err != nil || uid != "" && live.GetUID() != uid {
		return nil, said
	}
	found := r.find(ctx, live, refused)
	if len(found.Others) > 0 {
		return nil, advised(said, refused, r.cure(ctx, live, found))
	}
	if len(found.Own) == 0 {
		return nil, said
	}
	return r.rewrite(ctx, c, live, found)
}

// Renew renews the own entries of an object before an apply is rejected because of them: they block applies by anybody.
// Held is the object from a cache. The result is nil if there is nothing to renew, or if entries of others block
// applies, too.
func (r *Renewer) Renew(ctx context.Context, c dynamic.ResourceInterface, held *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, err := c.Get(ctx, held.GetName(), metav1.GetOptions{})
	if err != nil || live.GetUID() != held.GetUID() {
		return nil, err
	}
	if found := r.find(ctx, live, ""); len(found.Own) > 0 && len(found.Others) == 0 {
		return r.rewrite(ctx, c, live, found)
	}
	return nil, nil
}

// Finds reports whether an object has own entries of dropped versions.
func (r *Renewer) Finds(ctx context.Context, o *unstructured.Unstructured) bool {
	return len(r.find(ctx, o, "").Own) > 0
}

// find finds the entries of dropped versions. Refused is a version that is known to be dropped.
func (r *Renewer) find(ctx context.Context, live *unstructured.Unstructured, refused string) drift.Dropped {
	kind := live.GetKind()
	dropped := func(apiVersion string) bool {
		if apiVersion == refused {
			return true
		}
		_, err := r.kinds.KindOf(ctx, schema.FromAPIVersionAndKind(apiVersion, kind))
		return errors.Is(err, discovery.ErrMissing)
	}
	return drift.DroppedIn(live, dropped, r.isOwn)
}

func (r *Renewer) rewrite(ctx context.Context, c dynamic.ResourceInterface, live *unstructured.Unstructured, found drift.Dropped) (*unstructured.Unstructured, error) {
	return Rewrite(ctx, c, live, found.Renewed(live), r.managers[0], nil)
}

// advised returns the server's error about a version with a cure, because its own text would not help. The text quotes
// no value, so the result has it even if the error withholds values.
func advised(said error, version, cure string) error {
	answer := apierrors.APIStatus(nil)
	if !errors.As(said, &answer) {
		return fmt.Errorf("%w: %s", said, cure)
	}
	status := answer.Status()
	status.Message, status.Details = drift.RejectedVersionText+version+": "+cure, nil
	return &apierrors.StatusError{ErrStatus: status}
}

// cure returns advice on which entries of managedFields to remove, and how. The server ignores a change that leaves one
// of them.
func (r *Renewer) cure(ctx context.Context, live *unstructured.Unstructured, found drift.Dropped) string {
	entries := live.GetManagedFields()
	var whose []string
	// One test guards the indexes. Messages are cut, so the rest is short.
	patch := []map[string]any{{"op": "test", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()}}
	all := slices.Concat(found.Own, found.Others)
	slices.Sort(all)
	for _, i := range slices.Backward(all) {
		at := fmt.Sprintf("/metadata/managedFields/%d", i)
		if slices.Contains(found.Own, i) {
			patch = append(patch, map[string]any{"op": "replace", "path": at + "/apiVersion", "value": live.GetAPIVersion()})
			continue
		}
		patch = append(patch, map[string]any{"op": "remove", "path": at})
		whose = append(whose, fmt.Sprintf("that of %q (%s, version %s)", entries[i].Manager, entries[i].Operation, entries[i].APIVersion))
	}
	text, err := json.Marshal(patch)
	if err != nil {
		text = []byte("[]") // not reached: it is made of text
	}
	namespace := ""
	if live.GetNamespace() != "" {
		namespace = " -n " + live.GetNamespace()
	}
	resource := live.GetKind() // kubectl knows the kind, too
	if served, err := r.kinds.KindOf(ctx, live.GroupVersionKind()); err == nil {
		resource = served.GVR.GroupResource().String()
	}
	return fmt.Sprintf("the CRD has dropped the version of an entry in managedFields; remove %s: kubectl patch %s %s%s --type=json -p '%s'",
		strings.Join(whose, " and "), resource, live.GetName(), namespace, text)
}
