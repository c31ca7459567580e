// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package upgrades_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAnOperatorWithACallPrunes holds that children of a handler that is gone go if the function says what it makes, and that those
// of the function stay.
func TestAnOperatorWithACallPrunes(t *testing.T) {
	const left, made = "ConfigMap a of one/a", "ConfigMap b of two/"
	tests := map[string]struct {
		makes []string
		call  string
		want  []string
	}{
		"a function that makes children under its handler's id": {[]string{}, `{id: two, call: makes}`, []string{made}},
		"a function that has names of its own":                  {[]string{"part"}, `{id: two, call: makes}`, []string{made}},
		"a function that does not say what it makes":            {nil, `{id: two, call: makes}`, []string{left, made}},
		"a call in steps":       {[]string{}, `{id: two, steps: [{call: makes}]}`, []string{left, made}},
		"a call for each entry": {[]string{}, `{id: two, forEach: "${['x']}", call: makes}`, []string{left, made}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				functions := []dsl.Function{{Name: "makes", Func: scene.MakesConfigMapB, Makes: test.makes}}
				v.NextCalling(functions, scene.AppliesTemplates("one", scene.ConfigMapTemplate("a")), test.call)
				v.Advance(time.Minute)
				v.WantChildren(left, made)
				v.NextCalling(functions, test.call)
				v.Advance(time.Minute)
				v.WantChildren(test.want...)
				v.NextCalling(functions, test.call)
				v.Advance(time.Minute)
				v.WantChildren(test.want...)
			})
		})
	}
}
