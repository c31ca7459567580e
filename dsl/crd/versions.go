// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Version is a further version of a resource.
type Version struct {
	Name            string      `yaml:"name" required:"true" doc:"The name of the version, as in v1beta1."`
	Served          *bool       `yaml:"served" default:"true" doc:"Whether the API server takes and shows objects in this version."`
	Deprecated      string      `yaml:"deprecated" doc:"A warning for clients that use the version, as in use v2. Absent: the version is not deprecated."`
	Spec            Fields      `yaml:"spec" doc:"The fields of spec in this version. Default: the fields of the resource's own version."`
	Status          Fields      `yaml:"status" doc:"The fields of status in this version. Default: the fields of the resource's own version."`
	Validation      []Rule      `yaml:"validation" doc:"Rules over the whole object in this version. Default: the rules of the resource's own version, if spec and status are, too."`
	OpenAPIV3Schema *OpenAPI    `yaml:"openAPIV3Schema" doc:"The schema of the whole object in this version, instead of spec and status."`
	Columns         []Column    `yaml:"columns" doc:"The columns in this version. Default: the columns of the resource's own version, if spec and status are, too; else the age alone."`
	Convert         *Conversion `yaml:"convert" doc:"How objects become objects of the resource's own version, and back. Fields that both versions have stay as they are, without a word here. A field that the other version lacks is kept in an annotation until the object comes back."`

	// from is the Go type that replaces spec and status.
	from reflect.Type
}

// Conversion says how objects of a version become objects of the resource's own version, and back. Paths are those of fields
// in spec and status.
type Conversion struct {
	Move map[string]string `yaml:"move" doc:"Fields with another place, both ways: each field of this version, as in spec.replicas, with the field of the resource's own version that has the value, as in spec.size."`
	To   map[string]any    `yaml:"to" doc:"Fields of the resource's own version by their paths. Values may have ${…}, in which self is the object in this version; null leaves a field out. A value without ${…} is for objects that have no other."`
	From map[string]any    `yaml:"from" doc:"Fields of this version, in the form of to; self is the object in the resource's own version."`
}

// wantVersion says what the name of a version is.
const wantVersion = "want the name of a version, as in v1beta1"

// versions adds the further versions to a CRD that has the resource's own.
func (b *builder) versions(name dsl.ResourceName, crd *apiextensions.CustomResourceDefinition) {
	own, seen, differs := &crd.Spec.Versions[0], []string{name.Version}, len(b.form.Conversions) > 0
	for i := range b.form.Versions {
		v, at := &b.form.Versions[i], []string{"versions", strconv.Itoa(i)}
		switch {
		case v.Name == "": // the form reports it
		case len(validation.IsDNS1035Label(v.Name)) > 0:
			b.fault(append(at, "name"), wantVersion)
		case slices.Contains(seen, v.Name):
			b.fault(append(at, "name"), "there is a version %s already", form.Quoted(v.Name))
		}
		seen = append(seen, v.Name)
		out, own := b.version(at, v, own)
		differs = differs || !own || v.Convert != nil
		crd.Spec.Versions = append(crd.Spec.Versions, out)
	}
	b.storage(crd, seen)
	if differs {
		crd.Spec.Conversion = b.conversion(crd.Name)
	}
}

// version makes a further version. It reports whether objects have the form of those of the resource's own.
func (b *builder) version(at []string, v *Version, own *apiextensions.CustomResourceDefinitionVersion) (out apiextensions.CustomResourceDefinitionVersion, same bool) {
	out = *own.DeepCopy()
	out.Name, out.Served, out.Storage = v.Name, v.Served == nil || *v.Served, false
	if v.Deprecated != "" {
		out.Deprecated, out.DeprecationWarning = true, &v.Deprecated
	}
	if v.Spec == nil && v.Status == nil && v.OpenAPIV3Schema == nil && v.from == nil && v.Validation == nil && v.Columns == nil {
		return out, true
	}
	within := &builder{form: b.formOf(v), places: map[string]place{}}
	within.names()
	root := within.root()
	out.AdditionalPrinterColumns = within.columns(root)
	if v.OpenAPIV3Schema == nil || v.OpenAPIV3Schema.props != nil && len(within.faults) == 0 {
		within.lint(nil, root)
		within.validate(root)
	}
	out.Schema = &apiextensions.CustomResourceValidation{OpenAPIV3Schema: root}
	b.takeFaults(at, v, within.faults)
	return out, reflect.DeepEqual(root.Properties, own.Schema.OpenAPIV3Schema.Properties)
}

// takeFaults notes the faults of a version that its author wrote there. The others are those of the resource's own version.
func (b *builder) takeFaults(at []string, v *Version, faults []*shape.Misfit) {
	for _, fault := range faults {
		switch key := slices.Concat(fault.Path, []string{""})[0]; {
		case key == "types": // a type has its place once
		case key == "" || v.has(key):
			fault.Path = slices.Concat(at, fault.Path)
		default:
			continue // the resource's own version has it, too
		}
		b.faults = append(b.faults, fault)
	}
}

// has reports whether the version has a part of the schema itself.
func (v *Version) has(key string) bool {
	return map[string]bool{
		"spec": v.Spec != nil, "status": v.Status != nil, "openAPIV3Schema": v.OpenAPIV3Schema != nil, "validation": v.Validation != nil,
		"columns": v.Columns != nil,
	}[key]
}

// formOf returns the schema of a version as that of a resource.
func (b *builder) formOf(v *Version) *Schema {
	out := *b.form
	out.Versions, out.from, out.Columns, out.Validation = nil, v.from, v.Columns, v.Validation
	switch shaped := v.Spec != nil || v.Status != nil; {
	case v.OpenAPIV3Schema != nil || v.from != nil:
		out.OpenAPIV3Schema, out.Spec, out.Status, out.Types = v.OpenAPIV3Schema, v.Spec, v.Status, nil
	case shaped:
		out.OpenAPIV3Schema = nil
		if v.Spec != nil {
			out.Spec = v.Spec
		}
		if v.Status != nil {
			out.Status = v.Status
		}
	default:
		out.from = b.form.from
		out.Columns, out.Validation = slices.Concat(b.form.Columns, v.Columns), slices.Concat(b.form.Validation, v.Validation)
	}
	return &out
}

// storage chooses the version in which objects are stored.
func (b *builder) storage(crd *apiextensions.CustomResourceDefinition, versions []string) {
	stored := cmp.Or(b.form.Storage, versions[0])
	if !slices.Contains(versions, stored) {
		b.fault([]string{"storage"}, "%s", form.Unknown("version", stored, versions))
	}
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == stored
	}
}

// conversion has the operator convert objects. Until the operator runs and says where it is, the API server can neither read nor write
// objects in other versions than the stored one: with no conversion at all it would lose their fields.
func (b *builder) conversion(crd string) *apiextensions.CustomResourceConversion {
	return &apiextensions.CustomResourceConversion{
		Strategy: apiextensions.WebhookConverter,
		Webhook: &apiextensions.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensions.WebhookClientConfig{Service: &apiextensions.ServiceReference{
				Namespace: cmp.Or(b.form.Service.Namespace, "default"), Name: cmp.Or(b.form.Service.Name, strings.ToLower(b.form.Kind)+"-webhook"),
				Path: new(dsl.ConversionPath(crd)), Port: new(int32(443)),
			}},
		},
	}
}

// ServiceOf returns the Service by which the API server reaches the operator of a resource.
func ServiceOf(r *dsl.Resource) (out types.NamespacedName) {
	if op := r.Operator(); op != nil {
		out = types.NamespacedName{Namespace: op.Settings.LeaderElection.Namespace, Name: op.WebhookService()}
	}
	return out
}

// Also adds a further version to the CRD of [Describe], from a Go type as for Describe. [dsl.Resource.Convert] says how objects are
// converted.
func Also[T any](version string, more ...func(*Version)) func(*Schema) {
	return func(s *Schema) {
		v := Version{Name: version, from: reflect.TypeFor[T]()}
		for _, set := range more {
			set(&v)
		}
		s.Versions = append(s.Versions, v)
	}
}
