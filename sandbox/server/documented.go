// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import "k8s.io/kube-openapi/pkg/validation/spec"

// Documented is a Schema with a part in the OpenAPI v3 document of its group and version.
type Documented interface {
	Schema
	// Components returns schemas of the document by their names: that of the kind, with the extension
	// x-kubernetes-group-version-kind, that of its list, and all that these refer to. A reference is
	// #/components/schemas/NAME. The schemas are shared and not to be changed; the map is the caller's own.
	Components() map[string]*spec.Schema
}
