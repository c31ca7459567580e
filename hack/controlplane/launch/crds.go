// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

// manifest is one YAML document and the name of the object in it.
type manifest struct {
	name string
	body []byte
}

// readCRDs returns the CustomResourceDefinitions in the files, and in the YAML files below the
// folders, that are named. Other kinds of objects are left out.
func readCRDs(paths []string) ([]manifest, error) {
	var found []manifest
	for _, root := range paths {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			extension := filepath.Ext(path)
			if err != nil || entry.IsDir() || (path != root && extension != ".yaml" && extension != ".yml") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			crds, err := splitCRDs(text)
			if err != nil {
				return fmt.Errorf("parsing %s: %w", path, err)
			}
			found = append(found, crds...)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading CRDs: %w", err)
		}
	}
	return found, nil
}

// splitCRDs returns the CustomResourceDefinitions among the documents of a YAML stream.
func splitCRDs(stream []byte) ([]manifest, error) {
	var found []manifest
	for document := range bytes.SplitSeq(append([]byte("\n"), stream...), []byte("\n---")) {
		var head struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal(document, &head); err != nil {
			return nil, err
		}
		if head.Kind == "CustomResourceDefinition" {
			found = append(found, manifest{name: head.Metadata.Name, body: document})
		}
	}
	return found, nil
}

// applyCRDs puts the definitions into the cluster, over those of the same names.
func (c *client) applyCRDs(ctx context.Context, crds []manifest) error {
	for _, crd := range crds {
		path := crdPath + crd.name + "?fieldManager=controlplane&force=true"
		if _, err := c.do(ctx, http.MethodPatch, path, "application/apply-patch+yaml", crd.body); err != nil {
			return fmt.Errorf("applying CRD %s: %w", crd.name, err)
		}
	}
	return nil
}

// established fails while objects of one of the definitions cannot be created.
func (c *client) established(ctx context.Context, crds []manifest) error {
	for _, crd := range crds {
		body, err := c.get(ctx, crdPath+crd.name)
		if err != nil {
			return err
		}
		if !conditionTrue(body, "Established") {
			return fmt.Errorf("CRD %s is not established", crd.name)
		}
	}
	return nil
}

// conditionTrue looks into the status of an object in JSON.
func conditionTrue(object []byte, condition string) bool {
	type entry struct{ Type, Status string }
	var found struct {
		Status struct{ Conditions []entry }
	}
	err := json.Unmarshal(object, &found)
	return err == nil && slices.Contains(found.Status.Conditions, entry{condition, "True"})
}
