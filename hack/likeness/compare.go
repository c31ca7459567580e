// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// differences returns the fields in which two answers differ, one in each line, with the values of the real server and of the
// sandbox. It is empty for equal answers.
func differences(real, sandbox answer) (out []string) {
	want, got := map[string]string{}, map[string]string{}
	flatten(treeOf(real), "", want)
	flatten(treeOf(sandbox), "", got)
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		a, inReal := want[path]
		b, inSandbox := got[path]
		switch {
		case !inReal:
			out = append(out, fmt.Sprintf("%s: real has none, sandbox %s", path, b))
		case !inSandbox:
			out = append(out, fmt.Sprintf("%s: real %s, sandbox has none", path, a))
		case a != b:
			out = append(out, fmt.Sprintf("%s: real %s, sandbox %s", path, a, b))
		}
	}
	return out
}

// treeOf returns an answer as a tree.
func treeOf(a answer) (out any) {
	data, err := json.Marshal(a)
	if err != nil {
		return err.Error()
	}
	_ = json.Unmarshal(data, &out) // it was encoded just now
	return out
}

// flatten adds the leaves of a tree by their paths.
func flatten(value any, path string, into map[string]string) {
	switch value := value.(type) {
	case map[string]any:
		for key, each := range value {
			flatten(each, strings.TrimPrefix(path+"."+key, "."), into)
		}
		if len(value) == 0 {
			into[path] = "{}"
		}
	case []any:
		for i, each := range value {
			flatten(each, fmt.Sprintf("%s[%d]", path, i), into)
		}
		if len(value) == 0 {
			into[path] = "[]"
		}
	default:
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(value); err != nil {
			text.WriteString(err.Error())
		}
		into[path] = strings.TrimSpace(text.String())
	}
}
