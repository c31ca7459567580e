// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"os"
	"testing"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAPartRunsAsAHandlerDoes holds that a part gets the values of its parameters from the object as the handler sees it, that a
// change of what a value alone reads runs the handler, and that a value that does not fit fails the handler that gives it.
func TestAPartRunsAsAHandlerDoes(t *testing.T) {
	const part = `apiVersion: handwerk.dev/v1alpha1
kind: Part
parameters:
  size: integer | required=true maximum=7
  of: string | default=all
  more: string
set: {annotations: {size: "${string(size)} of ${of}, ${more == null ? 'no more' : more}"}}
`
	const text = `apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: op}
resources:
  - resource: foos.v1.example.com
    handlers:
      - {id: size, use: {file: size.yaml, with: {size: "${self.spec.size}", more: "${self.spec.?color}"}}}
`
	t.Chdir(t.TempDir())
	if err := os.WriteFile("size.yaml", []byte(part), 0o600); err != nil {
		t.Fatal(err)
	}
	scene.PlayConfiguration(t, text, func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		s.Resize(5)
		s.Settle()
		s.WantField("metadata.annotations.size", "5 of all, red")
		s.Resize(7)
		s.Settle()
		s.WantField("metadata.annotations.size", "7 of all, red")
		s.Resize(9)
		s.Settle()
		s.WantField("metadata.annotations.size", "7 of all, red") // the maximum of the parameter is 7
	})
}
