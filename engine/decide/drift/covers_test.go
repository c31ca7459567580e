// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

type tree = map[string]any

func TestCovers(t *testing.T) {
	named := func(name string, more ...any) tree {
		out := tree{"name": name}
		for i := 0; i < len(more); i += 2 {
			out[more[i].(string)] = more[i+1]
		}
		return out
	}
	tests := map[string]struct {
		desired, live any
		want          bool
	}{
		"defaults of the server are no difference":            {tree{"a": "1"}, tree{"a": "1", "b": "2"}, true},
		"a changed value is":                                  {tree{"a": "1"}, tree{"a": "2"}, false},
		"a missing value is":                                  {tree{"a": "1"}, tree{}, false},
		"an empty map may be left out":                        {tree{"a": tree{}}, tree{}, true},
		"null is missing":                                     {tree{"a": nil}, tree{}, true},
		"entries in order may have defaults":                  {tree{"l": []any{tree{"port": int64(80)}}}, tree{"l": []any{tree{"port": int64(80), "protocol": "TCP"}}}, true},
		"an entry added by others is no difference":           {tree{"l": []any{named("a")}}, tree{"l": []any{named("sidecar"), named("a", "image", "i")}}, true},
		"a named entry with another value is":                 {tree{"l": []any{named("a", "image", "i")}}, tree{"l": []any{named("sidecar"), named("a", "image", "j")}}, false},
		"arguments that somebody added are a difference":      {tree{"args": []any{"a"}}, tree{"args": []any{"a", "b"}}, false},
		"a named entry that is gone is":                       {tree{"l": []any{named("a")}}, tree{"l": []any{named("b")}}, false},
		"named entries in another order are no difference":    {tree{"l": []any{named("a"), named("b")}}, tree{"l": []any{named("b"), named("a")}}, true},
		"a shorter list is":                                   {tree{"l": []any{"a", "b"}}, tree{"l": []any{"a"}}, false},
		"finalizers that others added are none":               {tree{"finalizers": []any{"a"}}, tree{"finalizers": []any{"b", "a"}}, true},
		"a float and an integer of one value are the same":    {tree{"n": 3.0}, tree{"n": int64(3)}, true},
		"a quantity may be written otherwise":                 {tree{"limits": tree{"cpu": "1000m", "memory": "1Gi"}}, tree{"limits": tree{"cpu": "1", "memory": "1Gi"}}, true},
		"a quantity of another value is a difference":         {tree{"limits": tree{"cpu": "1000m"}}, tree{"limits": tree{"cpu": "2"}}, false},
		"text that looks like a quantity is not one":          {tree{"value": "1000m"}, tree{"value": "1"}, false},
		"a number where text was is a difference":             {tree{"a": "1"}, tree{"a": int64(1)}, false},
		"a map where a list was is a difference":              {tree{"a": []any{"1"}}, tree{"a": tree{"b": "1"}}, false},
		"a list where a map was is a difference, empty or no": {tree{"a": tree{}}, tree{"a": []any{}}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (knowledge{}).covers("", tt.desired, tt.live, false); got != tt.want {
				t.Errorf("covers() = %v, want %v", got, tt.want)
			}
		})
	}
}

// TestCoversBuiltin holds what is known of the kinds of Kubernetes itself.
func TestCoversBuiltin(t *testing.T) {
	container := func(more tree) tree {
		out := tree{"name": "c"}
		maps.Copy(out, more)
		return tree{"containers": []any{out}}
	}
	tests := map[string]struct {
		kind          string
		desired, live tree
		want          bool
	}{
		"a container that was injected is none of ours":     {"apps/Deployment", container(nil), tree{"containers": []any{tree{"name": "sidecar"}, tree{"name": "c"}}}, true},
		"a port that was added to a Service is none":        {"/Service", tree{"ports": []any{tree{"port": int64(80)}}}, tree{"ports": []any{tree{"port": int64(1), "name": "x"}, tree{"port": int64(80), "protocol": "TCP"}}}, true},
		"a mount that was added is none":                    {"/Pod", container(tree{"volumeMounts": []any{tree{"mountPath": "/a", "name": "v"}}}), container(tree{"volumeMounts": []any{tree{"mountPath": "/b", "name": "v"}, tree{"mountPath": "/a", "name": "v"}}}), true},
		"an empty value of a variable is left out":          {"apps/Deployment", container(tree{"env": []any{tree{"name": "E", "value": ""}}}), container(tree{"env": []any{tree{"name": "E"}}}), true},
		"a value that is no longer empty is a difference":   {"apps/Deployment", container(tree{"env": []any{tree{"name": "E", "value": ""}}}), container(tree{"env": []any{tree{"name": "E", "value": "x"}}}), false},
		"an empty value of a ConfigMap that is gone is one": {"/ConfigMap", tree{"data": tree{"value": ""}}, tree{"data": tree{}}, false},
		"a subject that somebody added to a binding is one": {"rbac.authorization.k8s.io/RoleBinding", tree{"subjects": []any{tree{"name": "a"}}}, tree{"subjects": []any{tree{"name": "a"}, tree{"name": "b"}}}, false},
		"a verb that somebody added to a role is one":       {"rbac.authorization.k8s.io/Role", tree{"rules": []any{tree{"verbs": []any{"get"}}}}, tree{"rules": []any{tree{"verbs": []any{"get", "delete"}}}}, false},
		"a port that somebody opened in a policy is one":    {"networking.k8s.io/NetworkPolicy", tree{"ports": []any{tree{"port": int64(80)}}}, tree{"ports": []any{tree{"port": int64(80)}, tree{"port": int64(22)}}}, false},
		"false where nothing is written is no difference":   {"/Pod", tree{"hostNetwork": false}, tree{}, true},
		"but it is where nothing means something else":      {"/Pod", tree{"automountServiceAccountToken": false}, tree{}, false},
		"the target of an autoscaler is a quantity":         {"autoscaling/HorizontalPodAutoscaler", tree{"target": tree{"value": "1000m"}}, tree{"target": tree{"value": "1"}}, true},
		"the value of a variable is not":                    {"apps/Deployment", container(tree{"env": []any{tree{"name": "E", "value": "1000m"}}}), container(tree{"env": []any{tree{"name": "E", "value": "1"}}}), false},
		"a CRD's kind may mean something by false":          {"example.com/Foo", tree{"paused": false}, tree{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			group, kind, _ := strings.Cut(tt.kind, "/")
			if got := knowing(schema.GroupKind{Group: group, Kind: kind}).covers("", tt.desired, tt.live, false); got != tt.want {
				t.Errorf("covers() = %v, want %v", got, tt.want)
			}
		})
	}
}
