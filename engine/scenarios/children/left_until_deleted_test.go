// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAChildThatIsUpdatedOnDeleteStaysWhateverIsPutBack holds that such a child keeps what it was made from also where the process was
// about to put something back, and the template changed before it could.
func TestAChildThatIsUpdatedOnDeleteStaysWhateverIsPutBack(t *testing.T) {
	scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [{id: app, apply: {a: {update: onDelete,
		template: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {size: "${string(self.spec.size)}"}}}}}]}`, func(s *scene.Stage) {
		size := func() any { return scene.ValueAt(s.Get(scene.ConfigMaps, "default", "web"), "data.size") }
		s.Begin()
		refused := 0
		end := s.Refuse(scene.ConfigMaps, func(o *unstructured.Unstructured) error {
			mark := o.GetAnnotations()["op.handwerk.dev/applied"]
			if o.GetName() != "web" || mark == "" || strings.HasPrefix(mark, "handwerk:;") || mark == "handwerk:" || scene.ValueAt(o, "data.more") != nil {
				return nil
			}
			refused++
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "web", nil)
		})
		s.Apply("kubectl-edit", `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: default}, data: {more: x}}`)
		s.Settle()
		if refused == 0 {
			t.Fatal("nothing was about to be put back")
		}
		s.Process.Kill()
		s.Resize(2)
		end()
		s.Process.Restart()
		s.Advance(time.Hour)
		if size() != "1" {
			t.Errorf("the size is %v: the child was updated", size())
		}
		s.Delete(scene.ConfigMaps, "default", "web")
		s.Settle()
		if size() != "2" {
			t.Errorf("the size is %v: the child was not made again", size())
		}
	})
}
