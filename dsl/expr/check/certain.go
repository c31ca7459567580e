// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// certain notes faults of an object's template that the API server is certain to reject, although the schema allows
// them.
func (f *fitter) certain(t *expr.Template, target *spec.Schema) {
	if f.kind.Empty() || f.schemas.Kinds == nil {
		return
	}
	f.metadata(field(t, "metadata"))
	f.twice("", t, target)
	if !f.own {
		return
	}
	switch f.kind.Group + "/" + f.kind.Kind {
	case "batch/Job":
		f.restartPolicy(field(t, "spec", "template", "spec"))
	case "batch/CronJob":
		f.restartPolicy(field(t, "spec", "jobTemplate", "spec", "template", "spec"))
	case "networking.k8s.io/Ingress":
		f.pathTypes(t)
	}
}

// field returns a field of a template that is written there; nil if it is not.
func field(t *expr.Template, path ...string) *expr.Template {
	for _, name := range path {
		if t == nil {
			return nil
		}
		i := slices.IndexFunc(t.Entries, func(e expr.Entry) bool { return e.Key.Plain == name })
		if i < 0 {
			return nil
		}
		t = &t.Entries[i].Value
	}
	return t
}

// metadata notes metadata that only another object can have.
func (f *fitter) metadata(t *expr.Template) {
	if t == nil {
		return
	}
	if text, _ := t.Plain.(string); len(t.Pieces) == 1 && strings.TrimSpace(strings.Trim(text, "${}")) == expr.Self+".metadata" {
		f.fault(t.Path, "an object cannot have another object's uid and other metadata: name the fields, as in {name: ${self.metadata.name}}")
	}
	for _, name := range []string{"uid", "resourceVersion"} {
		if of := field(t, name); of != nil && len(of.Pieces) == 0 && of.Plain != nil {
			f.faults = append(f.faults, &shape.Misfit{Path: of.Path, Key: true, Message: "the API server sets it: leave it out"})
		}
	}
}

// listKeys are the fields that tell the entries of a list of Pods apart, which the schemas of built-in kinds do not say.
var listKeys = map[string][]string{
	"containers": {"name"}, "initContainers": {"name"}, "volumes": {"name"}, "imagePullSecrets": {"name"}, "env": {"name"},
	"volumeMounts": {"mountPath"}, "volumeDevices": {"devicePath"}, "hostAliases": {"ip"},
}

// keysOf returns the fields that tell the entries of a list apart.
func (f *fitter) keysOf(name string, list *expr.Template, s *spec.Schema) []string {
	if s != nil {
		if keys, found := s.Extensions.GetStringSlice("x-kubernetes-list-map-keys"); found {
			return keys
		}
	}
	switch {
	case !f.own:
		return nil
	case name == "ports" && f.kind.Kind == "Service":
		return []string{"port", "protocol"}
	case name == "ports" && len(list.List) > 0 && field(&list.List[0], "containerPort") != nil:
		return []string{"containerPort", "protocol"}
	}
	return listKeys[name]
}

// twice notes entries of a list that have the same key. Name is the name of the list's field.
func (f *fitter) twice(name string, t *expr.Template, s *spec.Schema) {
	for i := range t.Entries {
		name, _ := t.Entries[i].Key.Plain.(string)
		f.twice(name, &t.Entries[i].Value, property(s, name))
	}
	var inner *spec.Schema
	if s != nil && s.Items != nil {
		inner = s.Items.Schema
	}
	keys, before := f.keysOf(name, t, s), map[string]bool{}
	for i := range t.List {
		f.twice("", &t.List[i], inner)
		key, known := keyOf(&t.List[i], keys, inner)
		switch {
		case !known:
		case before[key]:
			f.fault(t.List[i].Path, "%s is there twice: entries of this list need different keys", key)
		default:
			before[key] = true
		}
	}
}

// property returns the schema of a field; nil if it is not known.
func property(s *spec.Schema, name string) *spec.Schema {
	if s == nil {
		return nil
	}
	if of, found := s.Properties[name]; found {
		return &of
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Schema
	}
	return nil
}

// keyOf returns the key of an entry of a list, for people; known is false if it has none or one that is computed.
func keyOf(t *expr.Template, keys []string, s *spec.Schema) (key string, known bool) {
	var out []string
	for _, name := range keys {
		var value any
		switch of := field(t, name); {
		case of != nil && len(of.Pieces) == 0:
			value = of.Plain
		case of == nil && name == "protocol":
			value = "TCP"
		case of == nil && property(s, name) != nil:
			value = property(s, name).Default
		}
		if value == nil {
			return "", false
		}
		out = append(out, fmt.Sprintf("%s %v", name, value))
	}
	return strings.Join(out, ", "), len(keys) > 0
}

// restartPolicy notes a Job whose Pods have no restart policy, or one under which they never finish.
func (f *fitter) restartPolicy(pod *expr.Template) {
	if pod == nil || len(pod.Pieces) > 0 || slices.ContainsFunc(pod.Entries, func(e expr.Entry) bool { return len(e.Key.Pieces) > 0 }) {
		return
	}
	policy := field(pod, "restartPolicy")
	switch {
	case policy == nil:
		f.fault(pod.Path, "a Job needs restartPolicy: OnFailure or Never")
	case policy.Plain == "Always":
		f.fault(policy.Path, "a Job has OnFailure or Never")
	}
}

// pathTypes notes paths of an Ingress without a type.
func (f *fitter) pathTypes(t *expr.Template) {
	rules := field(t, "spec", "rules")
	if rules == nil {
		return
	}
	for i := range rules.List {
		paths := field(&rules.List[i], "http", "paths")
		if paths == nil {
			continue
		}
		for j := range paths.List {
			if one := &paths.List[j]; len(one.Pieces) == 0 && field(one, "pathType") == nil {
				f.fault(one.Path, "pathType is missing: Prefix, Exact or ImplementationSpecific")
			}
		}
	}
}
