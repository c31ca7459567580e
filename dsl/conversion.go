// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ConvertFunc completes to, an object in another version, from an object, which it must not change. To has the metadata already, and
// the fields of spec and status that both versions have at the same place. It also has the fields of its version that an earlier
// conversion has kept in an annotation. The function must be pure and quick: API servers wait for it when a client reads or writes an
// object in another version than the stored one. An error makes such a request fail.
type ConvertFunc func(from, to map[string]any) error

// Conversion converts objects between a further version of a resource and the version that the resource is declared with.
type Conversion struct {
	Version string
	// To makes objects of the resource's own version, and From those of Version. Nil has nothing to add.
	To, From ConvertFunc
	// Moved are fields of Version, and MovedTo the fields of the resource's own version that have their values, in the same order.
	// They are moved before To or From is called.
	Moved, MovedTo []Path
}

// Convert declares how objects of a further version of the resource become objects of the resource's own version, and back. The
// CRD has the versions: Also of package dsl/crd adds one.
func (r *Resource) Convert(version string, to, from ConvertFunc) {
	r.AddConversion(Conversion{Version: version, To: to, From: from})
}

// AddConversion is [Resource.Convert] with fields that move.
func (r *Resource) AddConversion(c Conversion) {
	r.conversions = append(r.conversions, c)
	r.described()
}

// Conversions returns the conversions in declared order. The slice is the caller's.
func (r *Resource) Conversions() []Conversion { return slices.Clone(r.conversions) }

// Converts reports whether the operator converts objects of the resource between its versions.
func (r *Resource) Converts() bool {
	strategy, _, _ := unstructured.NestedString(r.CRD, "spec", "conversion", "strategy")
	return strategy == "Webhook" || len(r.conversions) > 0
}

// CRDName returns the name of the resource's CRD, as in foos.example.com.
func (r *Resource) CRDName() string { return r.Name.Resource + "." + r.Name.Group }

// ConversionPath returns the path at which an operator converts the objects of a CRD.
func ConversionPath(crd string) string { return "/convert/" + crd }

// VersionsAnnotation returns the key of the annotation with fields that the present version of an object does not have. The value is
// JSON, by version.
func (op *Operator) VersionsAnnotation() string { return op.Prefix() + "/versions" }

// WebhookService returns the name of the Service by which the API server reaches the operator, unless its settings name another.
func (op *Operator) WebhookService() string { return op.Name + "-webhook" }

// Operator returns the operator of the resource; nil if it has none.
func (r *Resource) Operator() *Operator { return r.op }

// checkConversions reports faults of the conversions.
func (r *Resource) checkConversions(c check) {
	versions, _, _ := unstructured.NestedSlice(r.CRD, "spec", "versions")
	for i, conversion := range r.conversions {
		same := func(other Conversion) bool { return other.Version == conversion.Version }
		named := func(v any) bool {
			of, _ := v.(map[string]any)
			return of["name"] == conversion.Version
		}
		switch {
		case len(validation.IsDNS1035Label(conversion.Version)) > 0:
			c.fault("schema", "want the name of a version, as in v1beta1, found %q", conversion.Version)
		case r.Name.Version == "":
			c.fault("resource", "a resource with conversions needs a version")
		case conversion.Version == r.Name.Version:
			c.fault("schema", "%s is the resource's own version, and needs no conversion", conversion.Version)
		case slices.ContainsFunc(r.conversions[:i], same):
			c.fault("schema", "version %s is converted twice", conversion.Version)
		case r.CRD != nil && !slices.ContainsFunc(versions, named):
			c.fault("schema", "the CRD has no version %s that could be converted", conversion.Version)
		}
	}
}
