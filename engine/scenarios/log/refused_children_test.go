// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestChildrenThatAreRefusedAlikeAreLoggedInFullOnce holds that four objects whose children the API server refuses write
// four lines after each start, where one has the whole text, though each text names another object.
func TestChildrenThatAreRefusedAlikeAreLoggedInFullOnce(t *testing.T) {
	scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [{id: app, apply: {
		conf: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${self.metadata.name}-conf"}}}}]}`, func(s *scene.Stage) {
		log := scene.LaunchWithLog(s, `"handler"="app"`)
		s.Refuse(scene.ConfigMaps, func(o *unstructured.Unstructured) error {
			return fmt.Errorf("ConfigMap %q is invalid: metadata.name: Invalid value: %q: %s", o.GetName(), o.GetName(), lengthy)
		})
		makeFour(s)
		for _, start := range []string{"the first start", "a restart"} {
			s.Advance(7 * time.Second)
			lines, whole := log(), 0
			for _, line := range lines {
				if strings.Contains(line, "and this is its end") {
					whole++
				}
			}
			if len(lines) != len(four) || whole != 1 {
				t.Errorf("after %s there are %d lines, %d with the whole text:\n%s", start, len(lines), whole, strings.Join(lines, "\n"))
			}
			s.Process.Restart()
		}
	})
}
