// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorization "k8s.io/api/authorization/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
)

func TestCheckReportsMissingRights(t *testing.T) {
	rules := rbac.Of(foos(func(r *dsl.Resource) { r.Cache = dsl.CacheMetadata; r.OnDelete("bye", nothing) }), rbac.Settings{})
	asked := 0
	missing, err := rbac.Check(t.Context(), func(_ context.Context, about authorization.ResourceAttributes) (bool, error) {
		asked++
		return about.Verb != "patch", nil
	}, rules)
	if err != nil || asked != len(rules) {
		t.Fatalf("asked %d times for %d rights: %v", asked, len(rules), err)
	}
	var got []string
	for _, r := range missing {
		got = append(got, fmt.Sprintf("%s: %s", r, r.Reasons[0]))
	}
	want := []string{"patch events.events.k8s.io: engine: sends Events", "patch foos.example.com: engine: keeps its finalizer"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	away := errors.New("connection refused")
	_, err = rbac.Check(t.Context(), func(context.Context, authorization.ResourceAttributes) (bool, error) { return false, away }, rules)
	if !errors.Is(err, away) || !strings.HasPrefix(err.Error(), "reviewing the right to list namespaces") {
		t.Errorf("the error is %v", err)
	}
}
