// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"

	"gopkg.in/yaml.v3"
	quantity "k8s.io/apimachinery/pkg/api/resource"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// amount is an amount of memory in bytes.
type amount int64

const (
	amountPattern = `^[0-9]{1,9}([KMG]i|[kMG])?$`
	wantAmount    = "want an amount of memory such as 16Mi"
)

var validAmount = regexp.MustCompile(amountPattern)

// ReadForm accepts a number of bytes, and text as Kubernetes writes amounts.
func (a *amount) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	var q quantity.Quantity
	err := error(nil)
	if n.Kind == yaml.ScalarNode && validAmount.MatchString(n.Value) {
		q, err = quantity.ParseQuantity(n.Value)
		*a = amount(q.Value())
	}
	if q.Format == "" || err != nil {
		d.FaultAt(n, at, "%s, found %s", wantAmount, form.Found(n))
		return false
	}
	return true
}

// DescribeForm describes both.
func (a *amount) DescribeForm(*form.Describer) *form.Schema {
	return &form.Schema{Called: "amount of memory", OneOf: []*form.Schema{
		{Type: "string", Pattern: amountPattern, PatternErrorMessage: wantAmount}, {Type: "integer", Minimum: new(0.0)},
	}}
}
