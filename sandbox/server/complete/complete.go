// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package complete is the API server in memory with all that it can do. People and tests of operators work against it;
// the tests of the engine use a server that takes objects as they are.
package complete

import (
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/builtin"
	"github.com/handwerk-dev/handwerk/sandbox/server/custom"
)

// The past that a server keeps, and the pause between bookmarks, are those of a real API server.
const (
	history   = 1000
	bookmarks = time.Minute
)

// Settings returns the settings of a server that has controllers of objects' lives, rights by roles, admission, and schemas of
// all kinds. They are for one server.
func Settings() server.Settings {
	return server.Settings{
		History: history, Bookmarks: bookmarks, Controllers: true, Authorize: true, Admission: true, AllKinds: true, Schemas: schemas{builtin.New()},
	}
}

// schemas are those of the built-in kinds and of CRDs.
type schemas struct{ *builtin.Kinds }

// Builtin returns the schema of a built-in kind, or nil if it has none.
func (s schemas) Builtin(kind schema.GroupVersionKind) server.Schema {
	if kind.Group == apiextensionsv1.GroupName && kind.Kind == "CustomResourceDefinition" {
		return custom.Definition()
	}
	return s.Kinds.Builtin(kind)
}

// Custom returns the schemas of a CRD's versions.
func (schemas) Custom(crd *unstructured.Unstructured) (map[string]server.Schema, error) {
	return custom.Schemas(crd)
}
