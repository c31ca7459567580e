// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAHandlerSeesChildrenThatAnotherOneMadeLate holds that what one handler does to children is news to another one
// that reads them, also when it took several tries.
func TestAHandlerSeesChildrenThatAnotherOneMadeLate(t *testing.T) {
	const operator = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: op}
resources:
  - resource: foos.v1.example.com
    handlers:
      - id: parts
        apply:
          shard:
            forEach: ${self.spec.shards}
            template:
              apiVersion: v1
              kind: ConfigMap
              metadata: {name: "${self.metadata.name}-${item}"}
              data: {of: "${self.metadata.name}", color: "${self.spec.color}"}
      - id: report
        set:
          status:
            shards: ${size(children.shard)}
            colors: ${children.shard.map(s, s.data.color).join(',')}
`
	const foo = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {color: red, shards: [a, b]}}`
	fault := apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	tests := map[string]struct {
		play func(s *scene.Stage)
		want map[string]any
	}{
		"none fails": {
			play: func(s *scene.Stage) { s.Create(foo) },
			want: map[string]any{"shards": int64(2), "colors": "red,red"},
		},
		"the first fails once": {
			play: func(s *scene.Stage) {
				s.FailNext("patch", scene.ConfigMaps, fault)
				s.Create(foo)
			},
			want: map[string]any{"shards": int64(2), "colors": "red,red"},
		},
		"the second fails once": {
			play: func(s *scene.Stage) {
				s.FailNext("patch", scene.ConfigMaps, nil, fault)
				s.Create(foo)
			},
			want: map[string]any{"shards": int64(2), "colors": "red,red"},
		},
		"both fail for a while": {
			play: func(s *scene.Stage) {
				end := s.FailWhile("patch", scene.ConfigMaps, fault)
				s.Create(foo)
				s.Advance(5 * time.Minute)
				end()
			},
			want: map[string]any{"shards": int64(2), "colors": "red,red"},
		},
		"one more fails once": {
			play: func(s *scene.Stage) {
				s.Create(foo)
				s.Settle()
				s.FailNext("patch", scene.ConfigMaps, fault)
				s.Set([]any{"a", "b", "c"}, "spec", "shards")
			},
			want: map[string]any{"shards": int64(3), "colors": "red,red,red"},
		},
		"a change of one fails once": {
			play: func(s *scene.Stage) {
				s.Create(foo)
				s.Settle()
				s.FailNext("patch", scene.ConfigMaps, nil, fault)
				s.Set("blue", "spec", "color")
			},
			want: map[string]any{"shards": int64(2), "colors": "blue,blue"},
		},
		"the deletion of one fails once": {
			play: func(s *scene.Stage) {
				s.Create(foo)
				s.Settle()
				s.FailNext("delete", scene.ConfigMaps, fault)
				s.Set([]any{"a"}, "spec", "shards")
			},
			want: map[string]any{"shards": int64(1), "colors": "red"},
		},
		"the answer to one is lost": {
			play: func(s *scene.Stage) {
				s.LoseNext("patch", scene.ConfigMaps)
				s.Create(foo)
			},
			want: map[string]any{"shards": int64(2), "colors": "red,red"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayConfiguration(t, operator, func(s *scene.Stage) {
				s.Launch()
				test.play(s)
				s.Advance(20 * time.Minute)
				s.WantStatus(test.want)
				s.Process.Writes()
				s.Advance(time.Hour)
				s.Wrote()
			})
		})
	}
}

// TestAWriteToAChildRunsOtherHandlersThatReadIt is the same for handlers in Go: an operator's own write to a child is
// news for every handler that looks at children but the one that made it.
func TestAWriteToAChildRunsOtherHandlersThatReadIt(t *testing.T) {
	replicas := func(j *kit.Journal) dsl.Func {
		return j.Note("report", func(_ context.Context, r *dsl.Request) error {
			child, err := r.Children.Get(scene.Deployments, "web")
			if err != nil || child == nil {
				return err
			}
			n, _, err := unstructured.NestedInt64(child.Object, "spec", "replicas")
			r.Patch.SetStatus("replicas", n)
			return err
		})
	}
	replicated := func(want int64) func(s *scene.Stage) {
		return func(s *scene.Stage) {
			s.T.Helper()
			s.Advance(time.Minute)
			s.WantStatus(map[string]any{"replicas": want})
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a later one, when the child could be made only at the second try": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("child", scene.KeepsDeployment)
				foo.OnReconcile("report", replicas(j))
			}, Play: func(s *scene.Stage) {
				s.FailNext("patch", scene.Deployments, apierrors.NewInternalError(scene.ErrAgain))
				s.Launch()
				s.Create(scene.Web)
				replicated(1)(s)
			},
		},
		"an earlier one": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("report", replicas(j))
				foo.OnReconcile("child", j.Note("child", scene.KeepsDeployment))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				replicated(1)(s)
				s.Resize(2)
				replicated(2)(s)
				s.Forget()
				s.Advance(time.Hour)
				s.Called()
				s.Wrote()
			},
		},
		"an earlier one that runs for children alone, and not the one that made it": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnChild("report", replicas(j))
				foo.On([]dsl.Cause{dsl.Create, dsl.Update, dsl.Resume, dsl.Child}, "child", j.Note("child", scene.KeepsDeployment))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("child create", "report child")
				s.Resize(2)
				s.Called("child update", "report child")
				s.Advance(time.Hour)
				s.Called()
			},
		},
	})
}
