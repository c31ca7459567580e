// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/drift"
)

// renewed rewrites the operator's own entries in the managedFields of an object whose CRD has dropped their version: the
// API server refuses each apply while such an entry exists. It returns the object as it is then. The error is the
// server's, and names the entries of others that stand in the way.
func (s *Session) renewed(ctx context.Context, gvr schema.GroupVersionResource, key cache.ObjectName, said error) (*unstructured.Unstructured, error) {
	refused, _ := drift.RefusedVersion(said)
	with := s.family.settings
	live, err := with.Host.Read(ctx, gvr, key)
	if err != nil || live == nil {
		return nil, said
	}
	group := live.GroupVersionKind()
	dropped := func(apiVersion string) bool {
		if apiVersion == refused {
			return true
		}
		_, err := with.Catalog.KindOf(ctx, schema.FromAPIVersionAndKind(apiVersion, group.Kind))
		return errors.Is(err, catalog.ErrMissing)
	}
	found := drift.DroppedIn(live, dropped, s.family.names.isManager)
	if len(found.Others) > 0 {
		return nil, errors.New(said.Error() + ": " + cure(gvr, live, found)) // the words of the server alone would not help
	}
	if len(found.Own) == 0 {
		return nil, said
	}
	return apply.Rewrite(ctx, with.Host.Client(gvr, key.Namespace), live, found.Renewed(live), with.Operator.Name, nil)
}

// cure says which entries of managedFields to remove, and how. The server ignores a change that leaves one of them.
func cure(gvr schema.GroupVersionResource, live *unstructured.Unstructured, found drift.Dropped) string {
	entries := live.GetManagedFields()
	var whose []string
	// One test guards the places. Messages are cut, so the rest is short.
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
	return fmt.Sprintf("the CRD has dropped the version of an entry in managedFields; remove %s: kubectl patch %s %s%s --type=json -p '%s'",
		strings.Join(whose, " and "), gvr.GroupResource(), live.GetName(), namespace, text)
}
