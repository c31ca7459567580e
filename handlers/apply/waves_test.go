// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/handlers/graph"
)

func TestWaves(t *testing.T) {
	t.Parallel()
	of := graph.New(map[string][]string{"app": {"db"}, "db": {"secret"}, "secret": nil, "other": nil})
	type one struct {
		name string
		born int64
	}
	for name, c := range map[string]struct {
		left []one
		want [][]string
	}{
		"children go before those that they need": {
			[]one{{"app", 1}, {"db", 1}, {"secret", 1}}, [][]string{{"app"}, {"db"}, {"secret"}},
		},
		"a child that needs another one indirectly goes first": {
			[]one{{"secret", 1}, {"app", 1}}, [][]string{{"app"}, {"secret"}},
		},
		"children that do not need each other go together": {
			[]one{{"app", 1}, {"other", 1}}, [][]string{{"app", "other"}},
		},
		"all objects of a child go together": {
			[]one{{"db", 1}, {"secret", 1}, {"db", 2}}, [][]string{{"db", "db"}, {"secret"}},
		},
		"unknown names go first, the youngest before the others": {
			[]one{{"app", 9}, {"old", 1}, {"older", 0}, {"young", 2}}, [][]string{{"young"}, {"old"}, {"older"}, {"app"}},
		},
		"a name is as old as its oldest object": {
			[]one{{"a", 1}, {"a", 9}, {"b", 2}}, [][]string{{"b"}, {"a", "a"}},
		},
		"unknown names of the same time go together": {
			[]one{{"a", 1}, {"b", 1}}, [][]string{{"a", "b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var left []dsl.ChildObject
			for _, o := range c.left {
				u := existing("ConfigMap", "ns", o.name, o.name)
				u.SetCreationTimestamp(metav1.NewTime(time.Unix(o.born, 0)))
				left = append(left, dsl.ChildObject{ChildSpec: dsl.ChildSpec{Name: o.name}, Object: u})
			}
			var got [][]string
			for len(left) > 0 && len(got) <= len(c.left) {
				var wave []dsl.ChildObject
				wave, left = nextWave(of, left)
				var names []string
				for _, found := range wave {
					names = append(names, found.Name)
				}
				slices.Sort(names)
				got = append(got, names)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("waves (-want +got):\n%s", diff)
			}
		})
	}
}
