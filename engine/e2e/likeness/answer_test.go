// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// answer is what a client sees of a response.
type answer struct {
	Step string
	Code int
	// Kind is the media type.
	Kind     string
	Warnings []string
	// Body is the tree of a JSON, YAML or protobuf body, the events of a watch, or text.
	Body any
}

// lines are an answer for people.
func (a answer) lines() []string {
	text, err := yaml.Marshal(a)
	if err != nil {
		return []string{err.Error()}
	}
	return strings.Split(string(text), "\n")
}

// parsed returns the body of a media type.
func parsed(kind string, data []byte) (out any, err error) {
	switch media, _, _ := strings.Cut(kind, ";"); media {
	case "application/json":
		err = json.Unmarshal(data, &out)
	case "application/yaml":
		err = yaml.Unmarshal(data, &out)
	case "application/vnd.kubernetes.protobuf":
		known := binaryKinds()
		o, _, err := protobuf.NewSerializer(known, known).Decode(data, nil, nil)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		return out, json.Unmarshal(text, &out)
	default:
		return string(data), nil
	}
	return out, err
}

// binaryKinds returns the kinds that a body in protobuf can have. It is not to be changed.
var binaryKinds = sync.OnceValue(func() *runtime.Scheme {
	out := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(out); err != nil {
			panic(err) // not reached: no two kinds have one name
		}
	}
	return out
})

// valuesAt returns the values at a path, in all items of the lists on its way.
func valuesAt(value any, path []string) (out []any) {
	switch value := value.(type) {
	case []any:
		for _, each := range value {
			out = append(out, valuesAt(each, path)...)
		}
		return out
	case map[string]any:
		// A name may have dots, as those of annotations do.
		for n := len(path); n > 0; n-- {
			if below, found := value[strings.Join(path[:n], ".")]; found {
				return valuesAt(below, path[n:])
			}
		}
	}
	if len(path) > 0 {
		return nil
	}
	return []any{value}
}

// without removes what is at a path.
func without(value any, path []string) {
	switch value := value.(type) {
	case []any:
		for _, each := range value {
			without(each, path)
		}
	case map[string]any:
		if len(path) == 1 {
			delete(value, path[0])
			return
		}
		without(value[path[0]], path[1:])
	}
}

// slicesByLength returns names, the longest first, so that none is taken for the beginning of another.
func slicesByLength(names iter.Seq[string]) []string {
	return slices.SortedFunc(names, func(a, b string) int { return len(b) - len(a) })
}

// plain brings answers into a form without what each server chooses.
type plain struct {
	// namespace is that of the row.
	namespace string
	// uids and versions are those that were seen, by their numbers.
	uids, versions map[string]string
}

func newPlain(namespace string) *plain {
	return &plain{namespace: namespace, uids: map[string]string{}, versions: map[string]string{}}
}

// of returns an answer as it is compared.
func (p *plain) of(s step, a answer) answer {
	if s.Unwarned {
		a.Warnings = nil
	}
	for _, path := range s.Hide {
		without(a.Body, strings.Split(path, "."))
	}
	if len(s.Show) > 0 && a.Code < 300 {
		shown := map[string]any{}
		for _, path := range s.Show {
			shown[path] = valuesAt(a.Body, strings.Split(path, "."))
		}
		a.Body = shown
	}
	a.Body = p.value(a.Body, "")
	for i, warning := range a.Warnings {
		a.Warnings[i] = p.text(warning)
	}
	return a
}

// value returns a part of a body, which is at a key of its parent.
func (p *plain) value(value any, key string) any {
	switch value := value.(type) {
	case map[string]any:
		return p.fields(value)
	case []any:
		return p.items(value, key)
	case string:
		switch key {
		case "continue":
			return p.token(value)
		case "resourceVersion", "metadata.resourceVersion":
			return p.version(value)
		}
		return p.text(value)
	}
	return value
}

// items returns a list without what belongs to other rows. Managed fields are in one order, as that of a server depends
// on the second in which each was written.
func (p *plain) items(from []any, key string) any {
	if key == "managedFields" {
		slices.SortStableFunc(from, func(a, b any) int { return strings.Compare(manager(a), manager(b)) })
	}
	out := make([]any, 0, len(from))
	for _, each := range from {
		if !p.foreign(each) {
			out = append(out, p.value(each, key))
		}
	}
	return out
}

// manager is what tells one entry of managed fields from another.
func manager(entry any) string {
	e, _ := entry.(map[string]any)
	return fmt.Sprint(e["manager"], e["operation"], e["apiVersion"], e["subresource"])
}

// foreign reports whether a group or an object without a namespace belongs to another row.
func (p *plain) foreign(item any) bool {
	name, _ := item.(string)
	if o, is := item.(map[string]any); is {
		if name, is = o["name"].(string); !is {
			metadata, _ := o["metadata"].(map[string]any)
			name, _ = metadata["name"].(string)
		}
	}
	return strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, p.namespace)
}

// fields returns a map. The version of a list is not compared with those of objects: other writes raise it.
func (p *plain) fields(from map[string]any) any {
	generated(from)
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(from)) { // so that uids are seen in one order
		value := from[key]
		metadata, is := value.(map[string]any)
		if _, list := from["items"]; key == "metadata" && is && (list || from["rows"] != nil) && metadata["resourceVersion"] != nil {
			metadata["resourceVersion"] = listVersion
		}
		out[p.text(key)] = p.value(value, key)
	}
	return out
}

const listVersion = "of the list"

// generated puts a word in the place of the random end of a name.
func generated(metadata map[string]any) {
	prefix, _ := metadata["generateName"].(string)
	name, _ := metadata["name"].(string)
	if prefix != "" && len(name) >= 5 && (strings.HasPrefix(name, prefix) || strings.HasPrefix(prefix, name[:len(name)-5])) {
		metadata["name"] = name[:len(name)-5] + "<5>"
	}
}

// version returns the number of a resource version.
func (p *plain) version(text string) string {
	if text == "" || text == "0" || text == listVersion {
		return text
	}
	if p.versions[text] == "" {
		p.versions[text] = fmt.Sprintf("<version %d>", len(p.versions)+1)
	}
	return p.versions[text]
}

// token returns what a token of a list says, but for the version.
func (p *plain) token(text string) any {
	var out map[string]any
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(data, &out) != nil {
		return text
	}
	if version, _ := out["rv"].(float64); version > 0 {
		out["rv"] = "<version>"
	}
	return p.value(out, "")
}
