// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl/source"
)

// initAdd adds a resource to an operator that exists. It inserts text, so comments and order stay.
func (p *program) initAdd(f *initFlags) error {
	file := filepath.Join(f.dir, "operator.yaml")
	before, err := source.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the operator: %w", err)
	}
	old, err := p.parse(file, before, p.registry)
	if err != nil {
		return fmt.Errorf("reading the operator: %w", err)
	}
	for _, r := range old.Resources() {
		if r.Name.String() == f.resource {
			return fmt.Errorf("adding %s: %s has it already", f.resource, file)
		}
	}
	after, err := insertResource(string(before), resourceText(f))
	if err != nil {
		return fmt.Errorf("adding %s to %s: %w", f.resource, file, err)
	}
	op, err := p.parse(file, []byte(after), p.registry)
	if err != nil {
		return fmt.Errorf("adding %s to %s: %w", f.resource, file, plainly(err))
	}
	plural, _, _ := strings.Cut(f.resource, ".")
	files := []newFile{
		{"example-" + plural + ".yaml", example(f)},
		{plural + "_test.yaml", strings.Replace(firstCase(f), "given: example.yaml", "given: example-"+plural+".yaml", 1)},
	}
	crds, err := renewedCRDs(filepath.Join(f.dir, "crd.yaml"), crdsOf(old), crdsOf(op))
	if err != nil {
		return err
	}
	if err := p.write(f, files); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(after), 0o644); err != nil {
		return err
	}
	fmt.Fprintln(p.Out, "added", f.resource, "to", file)
	if crds != nil {
		if err := os.WriteFile(filepath.Join(f.dir, "crd.yaml"), crds, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(p.Out, "renewed", filepath.Join(f.dir, "crd.yaml"))
	}
	fmt.Fprintf(p.Out, `
next, test it, and play with it:
  operator test %[1]s
  operator play --config %[1]s --examples
`, filepath.ToSlash(f.dir))
	return nil
}

// renewedCRDs returns the new text of crd.yaml. It is nil if the file is not equal to the CRDs of the old operator: it is
// missing, or somebody has edited it.
func renewedCRDs(file string, old, now []map[string]any) ([]byte, error) {
	there, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) || len(old) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var before, after bytes.Buffer
	if err := cmp.Or(writeYAML(&before, old), writeYAML(&after, now)); err != nil {
		return nil, fmt.Errorf("writing crd.yaml: %w", err)
	}
	if !bytes.Equal(there, before.Bytes()) {
		return nil, nil
	}
	return after.Bytes(), nil
}

// insertResource inserts a resource at the end of the list of resources. It is indented by two; the list may have another
// indentation.
func insertResource(operator, resource string) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(operator), &document); err != nil {
		return "", err
	}
	root := document.Content[0]
	lines := strings.SplitAfter(operator, "\n")
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, list := root.Content[i], root.Content[i+1]
		if key.Value != "resources" {
			continue
		}
		if list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0 {
			return "", errors.New("resources is written in brackets; write it as a list of lines first")
		}
		end := len(lines)
		if i+2 < len(root.Content) {
			end = root.Content[i+2].Line - 1
		}
		for end > 0 && isBetweenSections(lines[end-1]) {
			end--
		}
		if !strings.HasSuffix(lines[end-1], "\n") {
			lines[end-1] += "\n"
		}
		first := lines[list.Content[0].Line-1]
		indentation := first[:len(first)-len(strings.TrimLeft(first, " "))]
		added := indent(strings.ReplaceAll("\n"+resource, "\n  ", "\n"), indentation)
		return strings.Join(lines[:end], "") + added + strings.Join(lines[end:], ""), nil
	}
	return "", errors.New("it has no resources")
}

// isBetweenSections reports whether a line is blank, or a comment at the margin, which belongs to the section after it.
func isBetweenSections(line string) bool {
	return strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#")
}
