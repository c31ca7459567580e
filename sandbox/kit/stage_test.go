// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestStage holds that a stage tells of calls and writes once each, in order, and forgets on demand.
func TestStage(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		const websites = "websites.v1.example.com"
		c.Serve(kit.Resource{Name: websites, Kind: "Website"})
		s := kit.NewStage(c, dsl.New("op"))
		notYet := func(context.Context, *dsl.Request) error { return dsl.Temporary(errors.New("not yet"), time.Second) }
		s.Operator.Resource(websites, func(website *dsl.Resource) {
			website.OnCreate("hello", s.Note("hello", notYet, nil))
		})
		s.Launch()
		s.Create(`{apiVersion: example.com/v1, kind: Website, metadata: {name: blog}}`)
		s.Called("hello create")
		s.Called()
		s.Wrote()
		s.Advance(time.Second)
		s.Called("hello create 2")
		s.Wrote("patch websites default/blog")
		s.Create(`{apiVersion: example.com/v1, kind: Website, metadata: {name: shop}}`)
		s.Forget()
		s.Called()
		s.Wrote()
		var got []string
		for _, call := range s.Of("hello", "blog") {
			got = append(got, call.String()+" "+call.Object.GetName())
		}
		if diff := cmp.Diff([]string{"hello create blog", "hello create 2 blog"}, got); diff != "" {
			t.Errorf("calls for blog (-want +got):\n%s", diff)
		}
		if n := s.Len(); n != 3 {
			t.Errorf("%d calls in all", n)
		}
	})
}
