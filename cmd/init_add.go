// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// initAdd adds a resource to an operator that exists. It inserts text, so comments and order stay.
func (p *program) initAdd(f *initFlags) error {
	file := filepath.Join(f.dir, "operator.yaml")
	before, err := source.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("adding %s: there is no %s; --add is for an operator in a file of this name", f.resource, file)
	}
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
	files := beside(f, old)
	if err := checkMissing(f, files); err != nil {
		return err
	}
	crds, err := renewedCRDs(filepath.Join(f.dir, "crd.yaml"), crdsOf(old), crdsOf(op))
	if err != nil {
		return err
	}
	changed := []newFile{{"operator.yaml", after}}
	if crds.text != "" {
		changed = append(changed, newFile{"crd.yaml", crds.text})
	}
	if err := writeFiles(f.dir, slices.Concat(files, changed)); err != nil {
		return err
	}
	p.tellAdded(f, files, crds)
	return nil
}

// beside returns the files for a resource that init adds: an object, and a case. They have the name of its group, too, if
// the operator has another resource of this plural.
func beside(f *initFlags, old *dsl.Operator) []newFile {
	name, err := dsl.ParseResourceName(f.resource)
	if err != nil {
		return nil // it was checked before
	}
	plural, text := name.Resource, firstCase(f)
	if slices.ContainsFunc(old.Resources(), func(r *dsl.Resource) bool { return r.Name.Resource == plural }) {
		text = strings.ReplaceAll(text, plural+"/example", plural+"."+name.Group+"/example")
		plural += "." + name.Group
	}
	return []newFile{
		{"example-" + plural + ".yaml", example(f)},
		{plural + "_test.yaml", strings.Replace(text, "given: example.yaml", "given: example-"+plural+".yaml", 1)},
	}
}

// tellAdded says what init --add has written, and what comes next.
func (p *program) tellAdded(f *initFlags, files []newFile, crds newCRDs) {
	for _, file := range files {
		fmt.Fprintln(p.Out, "wrote", filepath.Join(f.dir, file.name))
	}
	fmt.Fprintln(p.Out, "added", f.resource, "to", filepath.Join(f.dir, "operator.yaml"))
	if crds.text != "" {
		fmt.Fprintln(p.Out, "renewed", filepath.Join(f.dir, "crd.yaml"))
	}
	if crds.edited {
		fmt.Fprintf(p.Err, "note: %[1]s/crd.yaml stays, because it is not what operator crd prints: add the CRD from operator crd --config %[1]s/operator.yaml\n",
			filepath.ToSlash(f.dir))
	}
	fmt.Fprintf(p.Out, `
next, test it, and play with it:
  operator test %[1]s
  operator play --config %[1]s --examples
`, filepath.ToSlash(f.dir))
}

// newCRDs says how init --add changes crd.yaml.
type newCRDs struct {
	// text is its new text. Empty means that it stays as it is.
	text string
	// edited: it differs from the CRDs of the old operator.
	edited bool
}

// renewedCRDs returns the new text of crd.yaml, if the file is there and equal to the CRDs of the old operator.
func renewedCRDs(file string, old, now []map[string]any) (newCRDs, error) {
	there, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return newCRDs{}, nil
	}
	if err != nil {
		return newCRDs{}, err
	}
	var before, after bytes.Buffer
	if err := cmp.Or(writeYAML(&before, old), writeYAML(&after, now)); err != nil {
		return newCRDs{}, fmt.Errorf("writing crd.yaml: %w", err)
	}
	if !bytes.Equal(there, before.Bytes()) {
		return newCRDs{edited: true}, nil
	}
	return newCRDs{text: after.String()}, nil
}
