// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/cmd"
	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// TestValidateCountsAllThatAnOperatorHas holds that what is beside handlers is counted apart.
func TestValidateCountsAllThatAnOperatorHas(t *testing.T) {
	declare := func(op *dsl.Operator) {
		op.Name = "bar"
		op.Resource("bars.v1.example.com", func(r *dsl.Resource) {
			r.OnReconcile("only", nothing)
			r.Daemon("watch", func(context.Context, *dsl.DaemonRequest) error { return nil })
		})
		for _, name := range []string{"a", "b"} {
			op.Index(name, "bars.v1.example.com", func(*unstructured.Unstructured) ([]dsl.Entry, error) { return nil, nil })
		}
		op.OnStartup("begin", nothing)
		op.OnReady("probe", nothing)
	}
	for output, want := range map[string]string{
		"text": "operator bar: 1 resource, 1 handler, 1 daemon, 2 indexes, 2 activities: ok\n",
		"json": "\"handlers\": 1,\n  \"daemons\": 1,\n  \"indexes\": 2,\n  \"activities\": 2,",
	} {
		var out, errors bytes.Buffer
		args := []string{"validate"}
		if output == "json" {
			args = append(args, "-o", "json")
		}
		if code := cmd.Run(t.Context(), args, cmd.Streams{Out: &out, Err: &errors}, actions.NewRegistry(), declare); code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: got %d with %q and %q, want %q", output, code, out.String(), errors.String(), want)
		}
	}
}
