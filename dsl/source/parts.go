// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// Parts returns the files of parts that files of a configuration use, and those that these use, whether they exist or not. It
// goes by the form of a use alone, use: {file: …}, so it also finds them in a configuration with faults.
func Parts(names []string) (out []string) {
	var reader Reader
	var look func(name, dir string)
	look = func(name, dir string) {
		data, err := reader.ReadFile(name)
		if err != nil {
			return
		}
		text, faults := Read(name, data)
		if len(faults) > 0 {
			return
		}
		roots, _ := text.Documents() // those before a fault
		for _, root := range roots {
			for _, file := range usesIn(root) {
				used := filepath.Join(dir, filepath.FromSlash(file))
				if filepath.IsLocal(filepath.FromSlash(file)) && !slices.Contains(out, used) && !slices.Contains(names, used) {
					out = append(out, used)
					look(used, dir)
				}
			}
		}
	}
	for _, name := range names {
		look(name, filepath.Dir(name))
	}
	return out
}

// usesIn returns the files that are used in a node or below.
func usesIn(n *yaml.Node) (out []string) {
	for i, value := range n.Content {
		isUse := n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == "use" && value.Kind == yaml.MappingNode
		for j := 0; isUse && j+1 < len(value.Content); j += 2 {
			if value.Content[j].Value == "file" && form.IsText(value.Content[j+1]) {
				out = append(out, value.Content[j+1].Value)
			}
		}
		out = append(out, usesIn(value)...)
	}
	return out
}
