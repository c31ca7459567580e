// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/children/prune"
)

// TestReadersNoteWhatTheyCouldNotRead holds that a filter which could not read children is distinguished from one that fails
// for good.
func TestReadersNoteWhatTheyCouldNotRead(t *testing.T) {
	tests := map[string]struct {
		running, failed bool
		resource        string
	}{
		"children can be read":                   {true, false, "configmaps.v1"},
		"children cannot be read at this moment": {false, true, "configmaps.v1"},
		"what is asked for is not declared":      {true, false, "secrets.v1"},
	}
	for name, test := range tests {
		for call, read := range map[string]func(c *Reader) error{
			"all":  func(c *Reader) error { _, err := c.All(); return err },
			"get":  func(c *Reader) error { _, err := c.Get(test.resource, "c"); return err },
			"list": func(c *Reader) error { _, err := c.List(test.resource); return err },
		} {
			t.Run(name+": "+call, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, _ := configMaps(t, func(watch.Event) {})
					if test.running {
						go f.Run(t.Context())
						synctest.Wait()
					}
					own := source.New(source.Cluster{}, source.Settings{})
					of := &Family{settings: Settings{Own: own}, kinds: kinds{own: own, feeds: []*source.Source{f}, retired: prune.NewRetired(prune.RetiredSettings{})}}
					c := of.Begin(Input{Object: &unstructured.Unstructured{Object: configMap().Object}, Memory: &Memory{}}).Reader()
					undeclared := test.resource != "configmaps.v1" && call != "all"
					if err := read(c); dsl.IsPermanent(err) != undeclared || (err != nil) != (test.failed || undeclared) || c.Failed() != test.failed {
						t.Errorf("the error is %v, and failed is %t", err, c.Failed())
					}
				})
			})
		}
	}
}
