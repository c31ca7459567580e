// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// pluginOf returns the command by which kubectl runs a program of this path, as in "kubectl handwerk" for kubectl-handwerk. It is
// empty for other programs.
func pluginOf(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	words, is := strings.CutPrefix(name, "kubectl-")
	if !is || words == "" {
		return ""
	}
	return "kubectl " + strings.NewReplacer("-", " ", "_", "-").Replace(words)
}

// underKubectl makes help, usage and errors name the program as a person types it.
func (p *program) underKubectl(root *cobra.Command) {
	if p.plugin == "" {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: p.plugin}
	for _, c := range root.Commands() {
		for _, text := range []*string{&c.Long, &c.Example} {
			*text = strings.ReplaceAll(*text, root.Name()+" "+c.Name(), p.plugin+" "+c.Name())
		}
	}
}
