// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	celfunctions "github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// numbers replaces how CEL writes numbers with a fraction: string() writes them as JSON does, and format() as Go does. By default
// string() has an exponent from a million on, and the format() of Kubernetes' version of the library separates thousands.
func numbers() cel.EnvOption {
	return func(env *cel.Env) (*cel.Env, error) {
		format, err := plainFormat()
		if err != nil {
			return nil, fmt.Errorf("finding format(): %w", err)
		}
		for _, option := range []cel.EnvOption{
			cel.Function(overloads.TypeConvertString, cel.Overload(overloads.DoubleToString, []*cel.Type{cel.DoubleType}, cel.StringType,
				cel.UnaryBinding(func(v ref.Val) ref.Val { return types.String(plain.Text(float64(v.(types.Double)))) }))), // CEL calls it only with a double
			cel.Function(formatName, cel.MemberOverload(formatOverload, []*cel.Type{cel.StringType, cel.ListType(cel.DynType)}, cel.StringType, cel.FunctionBinding(format))),
		} {
			if env, err = option(env); err != nil {
				return nil, fmt.Errorf("replacing how numbers are written: %w", err)
			}
		}
		return env, nil
	}
}

// The function format and its overload.
const (
	formatName     = "format"
	formatOverload = "string_format"
)

// plainFormat returns the format() of the first version of CEL's library of texts that does not write for a country.
func plainFormat() (celfunctions.FunctionOp, error) {
	env, err := cel.NewCustomEnv(ext.Strings(ext.StringsVersion(4)))
	if err != nil {
		return nil, err
	}
	bindings, err := env.Functions()[formatName].Bindings()
	if err != nil {
		return nil, err
	}
	for _, one := range bindings {
		if one.Operator == formatOverload {
			return one.Function, nil
		}
	}
	return nil, errors.New("the library has no such function")
}
