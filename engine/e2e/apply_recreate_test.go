// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestApplyRecreatesWhatCannotBeChanged: a child whose template comes to another value of such a field is deleted and made
// again, once, where it says so.
func TestApplyRecreatesWhatCannotBeChanged(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"the template of a Job", "the selector of a Deployment"} {
		kind := fixed()[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := plane.Objects(kind.resource, "")
			s := newApplyStage(t, nil, made("", "configmaps"), made(objects.Name.Group, objects.Name.Resource))
			objects = plane.Objects(kind.resource, s.ns)
			s.run(t, beside+"fixed:\n  onImmutable: recreate\n  template:"+indented(kind.child, 4))
			s.works.Create(t, work("w", "a"))
			s.applied(t, "w")
			before := objects.Await(t, "w-fixed", "being made", there)
			mark := plane.Mark(t)
			s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
			objects.Await(t, "w-fixed", "being recreated", func(o *unstructured.Unstructured) bool { return o.GetUID() != before.GetUID() })
			s.applied(t, "w")
			s.quiesce(t, "w")
			deleted := 0
			for _, w := range plane.Writes(t, s.user.Name, mark).Of(objects.Name.Resource, "w-fixed") {
				if w.Verb == "delete" {
					deleted++
				}
			}
			if line := s.running.With("deleted " + before.GetKind() + " " + s.ns + "/w-fixed: " + strings.TrimSuffix(kind.words, " is immutable")); deleted != 1 || len(line) != 1 {
				t.Errorf("it was deleted %d times, and reported\n%s", deleted, strings.Join(line, "\n"))
			}
			if failed := s.running.With("handler will be tried again"); len(failed) > 0 {
				t.Errorf("the handler failed:\n%s", strings.Join(failed, "\n"))
			}
		})
	}
}
