// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestRefuse holds that what is written is reviewed on both endpoints, until that ends.
func TestRefuse(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: foos, Kind: "Foo"})
		end := c.Refuse(foos, func(o *unstructured.Unstructured) error {
			if size, _, _ := unstructured.NestedInt64(o.Object, "status", "size"); size > 2 {
				return errors.New("too large")
			}
			return nil
		})
		var seen []string
		p := c.Start(watcher(&seen))
		c.Create(oneFoo)
		c.Settle()
		size(c, 3)
		c.Advance(3 * time.Second)
		end()
		c.Advance(time.Minute)
		var writes []string
		for _, w := range p.Writes() {
			writes = append(writes, w.String())
		}
		want := []string{"patch foos/status default/web", "patch foos/status default/web: 403", "patch foos/status default/web"}
		if diff := cmp.Diff(want, slices.Compact(writes)); diff != "" {
			t.Errorf("writes, repeated ones once (-want +got):\n%s", diff)
		}
	})
}
