// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"net/netip"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
)

type Depth struct {
	Level int `json:"level"`
	Name  int `json:"name"`
}

type Part struct {
	Piece string `json:"piece"`
}

// tagged is a struct of an author who uses it with other libraries, too.
type tagged struct {
	Name  string   `json:"name"`
	Both  string   `json:"both" yaml:"other"`
	Known string   `json:"known" required:"true"`
	List  []string `json:"list" min:"2" unique:"true"`
	Text  string   `json:"text" min:"much"`
	Part  `json:"part"`
	Hosts map[netip.Addr]int `json:"hosts"`
	Ports map[int]Part       `json:"ports"`
	Count int                `json:"count,string"`
	Wait  metav1.Duration    `json:"wait"`
	Depth
}

func TestParametersAreReadAsEncodingJSONReadsThem(t *testing.T) {
	tests := map[string]struct {
		with dsl.Params
		want string
	}{
		"the name is that of the json tag":                       {dsl.Params{"both": "x"}, ""},
		"the name of another tag is none":                        {dsl.Params{"Other": "x"}, "with.Other: unknown parameter (want one of name, both, known, list, text, part, hosts, ports, count, wait, level)"},
		"other tags have no effect":                              {dsl.Params{"list": []any{"a", "a"}[:1], "text": "x"}, ""},
		"the field that lies less deep has the name":             {dsl.Params{"name": "x"}, ""},
		"an embedded struct with a name is a field":              {dsl.Params{"part": map[string]any{"piece": "x"}}, ""},
		"and its fields are not those of the struct":             {dsl.Params{"piece": "x"}, "with.piece: unknown parameter (want one of name, both, known, list, text, part, hosts, ports, count, wait, level)"},
		"a value that is worked out, in any map":                 {dsl.Params{"hosts": map[string]any{"10.0.0.1": "${self.spec.a}"}}, ""},
		"a wrong value in such a map is reported with its place": {dsl.Params{"hosts": map[string]any{"10.0.0.1": "x"}}, `with.hosts.10.0.0.1: want a whole number that fits, found the text "x"`},
		"so is a key that cannot be read":                        {dsl.Params{"hosts": map[string]any{"10": int64(1)}}, `with.hosts.10: "10" is no key here: ParseAddr("10"): unable to parse IP`},
		"and one that is no number":                              {dsl.Params{"ports": map[string]any{"http": nil}}, `with.ports.http: "http" is no key here: want a whole number that fits`},
		"what stands in such a map is read strictly":             {dsl.Params{"ports": map[string]any{"80": map[string]any{"piec": "x"}}}, `with.ports.80.piec: unknown parameter (did you mean "piece"?)`},
		"a type that reads itself sees null":                     {dsl.Params{"wait": nil}, `with.wait: time: invalid duration ""`},
		"what cannot be decoded later is not taken before":       {dsl.Params{"count": int64(5)}, "with: decoding parameters: json: invalid use of ,string struct tag, trying to unmarshal unquoted value into int"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := dsl.Function{Name: "f", Func: func(context.Context, *dsl.Request) error { return nil }, Params: tagged{}}
			if got := placed(t, checkParams(f, test.with)); got != test.want {
				t.Errorf("faults:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}
