// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// TestPauseAndResume holds what the commands write, and what they say.
func TestPauseAndResume(t *testing.T) {
	tests := map[string]struct {
		commands []string
		want     map[string]string
		says     string
	}{
		"a pause until somebody resumes": {
			[]string{"pause --operator foo -m looking"},
			map[string]string{"reason": "looking", "deletions": "hold"}, "operator foo is paused until operator resume (ConfigMap handwerk-system/foo-paused)\n",
		},
		"for a time": {
			[]string{"pause --config foo.yaml -m looking --for 2h"},
			map[string]string{"reason": "looking", "deletions": "hold", "until": "2h0m0s"}, "operator foo is paused until 2000-01-01T02:00:00Z ",
		},
		"deletions go on": {
			[]string{"pause --operator foo -m looking --deletions proceed"},
			map[string]string{"reason": "looking", "deletions": "proceed"}, "is paused",
		},
		"another pause takes the place of the one before": {
			[]string{"pause --operator foo -m looking --for 2h --deletions proceed", "pause --operator foo -m again"},
			map[string]string{"reason": "again", "deletions": "hold"}, "is paused",
		},
		"a resume ends it": {
			[]string{"pause --operator foo -m looking", "resume --operator foo"}, nil, "operator foo goes on\n",
		},
		"a resume without a pause says so": {
			[]string{"resume --operator foo"}, nil, "operator foo is not paused (there is no ConfigMap handwerk-system/foo-paused)\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
				c.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: handwerk-system}}`)
				b := newBench(t)
				b.login = func(context.Context) (*rest.Config, error) { return c.Config(), nil }
				for _, args := range tt.commands {
					if code := b.execute(context.WithoutCancel(t.Context()), strings.Fields(args)); code != exitOK {
						t.Fatalf("operator %s: exit code %d: %s", args, code, b.err.String())
					}
				}
				if said := b.out.String(); !strings.Contains(said, tt.says) {
					t.Errorf("it says %q, want %q", said, tt.says)
				}
				var data map[string]string
				if o := c.Get("configmaps.v1", "handwerk-system", "foo-paused"); o != nil {
					data, _, _ = unstructured.NestedStringMap(o.Object, "data")
					since, err := time.Parse(time.RFC3339, data["since"])
					if err != nil || data["by"] == "" {
						t.Errorf("data %v, want since and by in it", data)
					}
					if until, err := time.Parse(time.RFC3339, data["until"]); err == nil {
						data["until"] = until.Sub(since).String()
					}
					delete(data, "since")
					delete(data, "by")
				}
				if diff := cmp.Diff(tt.want, data); diff != "" {
					t.Errorf("data (-want +got):\n%s", diff)
				}
			})
		})
	}
}
