// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package roundtrip

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"
	limits "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/handwerk-dev/handwerk/dsl"
)

// version is a version of a resource.
type version struct {
	name, kind string
	structural *structural.Structural
	schema     *spec.Schema
	validator  *validate.SchemaValidator
	// rules are nil if the schema has none.
	rules *cel.Validator
}

// versionsOf returns the versions of a resource, its own first.
func versionsOf(r *dsl.Resource) (out []*version, err error) {
	crd := apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(r.CRD, &crd); err != nil {
		return nil, fmt.Errorf("reading CRD: %w", err)
	}
	for _, of := range crd.Spec.Versions {
		v := &version{name: of.Name, kind: crd.Spec.Names.Kind}
		internal := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(of.Schema.OpenAPIV3Schema, internal, nil); err != nil {
			return nil, fmt.Errorf("reading schema of %s: %w", of.Name, err)
		}
		if v.structural, err = structural.NewStructural(internal); err != nil {
			return nil, fmt.Errorf("reading schema of %s: %w", of.Name, err)
		}
		v.schema = v.structural.ToKubeOpenAPI()
		v.validator = validate.NewSchemaValidator(v.schema, nil, "", strfmt.Default)
		v.rules = cel.NewValidator(v.structural, true, limits.PerCallLimit)
		if out = append(out, v); of.Name == r.Name.Version {
			out[0], out[len(out)-1] = out[len(out)-1], out[0]
		}
	}
	return out, nil
}

// invalid returns why the API server would reject an object.
func (v *version) invalid(object map[string]any) error {
	if result := v.validator.Validate(object); len(result.Errors) > 0 {
		return errors.New(strings.Replace(result.Errors[0].Error(), " in body", "", 1))
	}
	if v.rules == nil {
		return nil
	}
	ctx := context.Background() //nolint:forbidigo // a computation that nobody ends from outside
	if faults, _ := v.rules.Validate(ctx, nil, v.structural, object, nil, limits.RuntimeCELCostBudget); len(faults) > 0 {
		return errors.New(faults[0].Field + ": " + faults[0].Detail)
	}
	return nil
}

// prune removes the fields that the API server would remove.
func (v *version) prune(object map[string]any) { pruning.Prune(object, v.structural, true) }
