// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// existing is a kind of somebody else, for which init writes an operator.
type existing struct {
	// object is the CRD without what an API server keeps on it.
	object map[string]any
	crd    *apiextensions.CustomResourceDefinition
	// version is the version that the operator handles.
	version apiextensions.CustomResourceDefinitionVersion
}

// initExisting writes an operator for the kind of a CRD that exists.
func (p *program) initExisting(f *initFlags) error {
	of, err := readExisting(f.existing, f.kind)
	if err != nil {
		return fmt.Errorf("reading the CRD: %w", err)
	}
	names := of.crd.Spec.Names
	f.kind, f.resource = names.Kind, names.Plural+"."+of.version.Name+"."+of.crd.Spec.Group
	f.name = cmp.Or(f.name, strings.ToLower(f.kind))
	f.dir = cmp.Or(f.dir, f.name)
	if err := f.checkName(); err != nil {
		return err
	}
	text := of.render(f)
	if _, err := p.parse(filepath.Join(f.dir, "operator.yaml"), []byte(text), p.registry); err != nil {
		return fmt.Errorf("making the configuration: %w", plainly(err))
	}
	var crd bytes.Buffer
	if err := writeYAML(&crd, []map[string]any{of.object}); err != nil {
		return fmt.Errorf("writing crd.yaml: %w", err)
	}
	object, notes, err := of.example()
	if err != nil {
		return fmt.Errorf("making example.yaml: %w", err)
	}
	agents, err := fill("AGENTS.md", beginningData{Name: f.name, Kind: f.kind, Resource: f.resource, Plural: names.Plural, Program: "operator", Existing: true})
	if err != nil {
		return fmt.Errorf("making AGENTS.md: %w", err)
	}
	err = p.write(f, []newFile{
		{"operator.yaml", text}, {"crd.yaml", crd.String()}, {"example.yaml", object}, {"operator_test.yaml", of.firstCase()}, {"AGENTS.md", agents},
	})
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintf(p.Err, "note: %s: %s\n", filepath.Join(f.dir, "example.yaml"), note)
	}
	p.tellNext(f.dir, "")
	return nil
}

// checkExisting checks the flags beside --existing.
func (f *initFlags) checkExisting() error {
	if f.golang || f.machine || f.resource != "" || f.replace != "" || f.github || len(f.children) > 0 {
		return errors.New("--existing goes with --kind, --dir and --force alone")
	}
	return nil
}

// readExisting reads the CRD of a file. With a kind, it is the CRD of this kind; without one, the file must have one CRD.
func readExisting(file, kind string) (*existing, error) {
	in, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsRune(file, filepath.Separator) {
		return nil, fmt.Errorf("there is no file %[1]s; for a CRD of the cluster: kubectl get crd %[1]s -o yaml > crd.yaml", file)
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	documents, err := documentsIn(in)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	var kinds []string
	var found *existing
	for _, document := range documents {
		one, err := newExisting(document)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if one == nil {
			continue
		}
		kinds = append(kinds, one.crd.Spec.Names.Kind)
		if kind == "" || kind == one.crd.Spec.Names.Kind {
			found = one
		}
	}
	switch {
	case len(kinds) == 0:
		return nil, fmt.Errorf("%s has no CustomResourceDefinition", file)
	case found == nil:
		return nil, fmt.Errorf("%s has no CRD of kind %s; it has those of %s", file, kind, strings.Join(kinds, ", "))
	case kind == "" && len(kinds) > 1:
		return nil, fmt.Errorf("%s has CRDs of several kinds; choose by --kind one of %s", file, strings.Join(kinds, ", "))
	}
	return found, nil
}

// documentsIn returns the documents of a file, and the items of its lists, as JSON.
func documentsIn(in io.Reader) (out [][]byte, err error) {
	for documents := yaml.NewYAMLOrJSONDecoder(in, 4096); ; {
		var raw runtime.RawExtension
		if err := documents.Decode(&raw); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		var list struct {
			Items []runtime.RawExtension `json:"items"`
		}
		if err := json.Unmarshal(raw.Raw, &list); err != nil || list.Items == nil {
			out = append(out, raw.Raw) // newExisting reports what is wrong with it
			continue
		}
		for _, item := range list.Items {
			out = append(out, item.Raw)
		}
	}
}

// newExisting reads a document, and chooses the version of its CRD: the one that is stored if it is served, or else the first
// served one. It returns nil for other documents.
func newExisting(document []byte) (*existing, error) {
	var object map[string]any
	if err := json.Unmarshal(document, &object); err != nil || object["kind"] != "CustomResourceDefinition" {
		return nil, err
	}
	out := &existing{crd: &apiextensions.CustomResourceDefinition{}}
	if err := json.Unmarshal(document, out.crd); err != nil {
		return nil, err
	}
	served := slices.DeleteFunc(slices.Clone(out.crd.Spec.Versions), func(v apiextensions.CustomResourceDefinitionVersion) bool { return !v.Served })
	if len(served) == 0 || out.crd.APIVersion != apiextensions.SchemeGroupVersion.String() {
		return nil, fmt.Errorf("CRD %s has no version that is served, or is not of %s", out.crd.Name, apiextensions.SchemeGroupVersion)
	}
	out.version = served[max(0, slices.IndexFunc(served, func(v apiextensions.CustomResourceDefinitionVersion) bool { return v.Storage }))]
	delete(object, "status")
	clean := unstructured.Unstructured{Object: object}
	metadata := map[string]any{"name": clean.GetName()}
	if annotations := clean.GetAnnotations(); len(annotations) > 0 {
		delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		kept := map[string]any{}
		for key, value := range annotations {
			kept[key] = value
		}
		metadata["annotations"] = kept // the API server asks for one with the groups of Kubernetes
	}
	object["metadata"], out.object = metadata, object
	return out, nil
}

const existingText = `# The operator %[1]s looks after every %[2]s. The kind is somebody else's: crd.yaml is a copy of its CRD, for tests and play.
#
#   operator validate --config operator.yaml
#   operator run --config operator.yaml
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata:
  name: %[1]s
resources:
  - resource: %[3]s
    handlers:
      # Children are made, kept as they are written here, and taken away with their owner.
      # ${…} holds CEL; self is the object. Its status belongs to others, but for the condition Applied.
      # A handler may set annotations and labels.
      - id: children
        apply:
          about:
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: "${self.metadata.name}-about"%[4]s}
            data: {about: "%[2]s ${self.metadata.name}"}
`

// namespace is the namespace of the child in a template, and in a case. Both are empty for a child in the owner's namespace.
func (e *existing) namespace() (template, inCase string) {
	if e.crd.Spec.Scope == apiextensions.ClusterScoped {
		return ", namespace: default", "default/"
	}
	return "", ""
}

// render returns the configuration.
func (e *existing) render(f *initFlags) string {
	namespace, _ := e.namespace()
	return fmt.Sprintf(existingText, f.name, f.kind, f.resource, namespace)
}

// firstCase returns a case for the example object.
func (e *existing) firstCase() string {
	_, namespace := e.namespace()
	return fmt.Sprintf(`# What the operator does, held by cases. They need no cluster, and an hour in them costs nothing:
#
#   operator test .
given: example.yaml
cases:
  - name: The ConfigMap says what it is about
    expect:
      objects:
        configmaps/%sexample-about: {data: {about: %s example}}
`, namespace, e.crd.Spec.Names.Kind)
}

// example returns an object with the required fields, and notes on fields that somebody should look at.
func (e *existing) example() (text string, notes []string, err error) {
	var s skeleton
	object := map[string]any{}
	if e.version.Schema != nil && e.version.Schema.OpenAPIV3Schema != nil {
		object = s.object(e.version.Schema.OpenAPIV3Schema, "")
	}
	object["apiVersion"], object["kind"] = e.crd.Spec.Group+"/"+e.version.Name, e.crd.Spec.Names.Kind
	object["metadata"] = map[string]any{"name": "example"}
	var out bytes.Buffer
	err = writeYAML(&out, []map[string]any{object})
	return out.String(), s.notes, err
}
