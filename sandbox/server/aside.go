// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"maps"
	"strings"
)

// SetAside takes the managed fields from an object, and returns them. Schemas work without them: they are long, and the
// server knows them. The metadata become a copy.
func SetAside(object map[string]any) (managed any) {
	metadata, _ := object["metadata"].(map[string]any)
	if list, is := metadata["managedFields"].([]any); is { // what a client sends in its place is none
		managed = list
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		object["metadata"] = metadata
	}
	return managed
}

// PutBack gives an object the managed fields that [SetAside] has returned.
func PutBack(object map[string]any, managed any) {
	if metadata, _ := object["metadata"].(map[string]any); metadata != nil && managed != nil {
		metadata["managedFields"] = managed
	}
}

// Replace gives an object the content of another, but keeps its managed fields as [SetAside] has returned them.
func Replace(object, by map[string]any, managed any) {
	clear(object)
	maps.Copy(object, by)
	PutBack(object, managed)
}

// UnknownFields returns the paths of the unknown fields that sigs.k8s.io/json.UnmarshalStrict has found.
func UnknownFields(strict []error) (paths []string) {
	for _, each := range strict {
		path := strings.TrimPrefix(each.Error(), `unknown field "`)
		paths = append(paths, strings.TrimSuffix(path, `"`))
	}
	return paths
}
