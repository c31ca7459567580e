// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// latin1 is a text that is not UTF-8; a type of an author's is one, too.
const latin1 = "caf\xe9"

type authors string

// TestAKeyThatIsNotUTF8IsNoOtherKey holds that neither an index nor who looks something up takes such a key for another one,
// and that both say so.
func TestAKeyThatIsNotUTF8IsNoOtherKey(t *testing.T) {
	for name, key := range map[string]any{"a text": latin1, "a type of an author's": authors(latin1)} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{
				Operator: func(foo *dsl.Resource, j *kit.Journal) {
					foo.OnReconcile("see", func(_ context.Context, r *dsl.Request) error {
						names, err := dsl.Index[authors, string](r, "owners")
						if err != nil {
							return err
						}
						good, err := names.Get("café")
						if err != nil {
							return err
						}
						_, err = names.Get(latin1)
						j.Add(fmt.Sprint(good, " ", names.Len(), " ", err))
						return nil
					})
				},
				Play: func(s *scene.Stage) {
					s.Operator.Index("owners", scene.Foos, func(o *unstructured.Unstructured) ([]dsl.Entry, error) {
						if o.GetName() == "web" {
							return []dsl.Entry{{Key: key, Value: "web"}}, nil
						}
						return []dsl.Entry{{Key: authors("café"), Value: o.GetName()}}, nil
					})
					s.Create(scene.Web)
					s.Create(strings.Replace(scene.Web, "web", "good", 1))
					s.Launch()
					said := `[good] 1 reading index owners: a key is text in UTF-8, found "caf\xe9"`
					s.CalledInAnyOrder(said, said)
					wantIndexHealth(s, "indexed", `default/web: a key is text in UTF-8, found "caf\xe9"`)
				},
			})
		})
	}
}
