// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package roundtrip

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/convert"
	"github.com/handwerk-dev/handwerk/dsl/crd"
)

type fooSpec struct {
	Size  int64  `json:"size" schema:"minimum=0"`
	Color string `json:"color,omitempty" schema:"enum=red,blue"`
}

type foo struct {
	Spec fooSpec `json:"spec"`
}

type oldSpec struct {
	Replicas int64 `json:"replicas" schema:"minimum=0"`
}

type oldFoo struct {
	Spec oldSpec `json:"spec"`
}

// described is a resource in Go whose version v1 is converted by functions.
func described(to, from dsl.ConvertFunc) *dsl.Resource {
	op := dsl.New("demo")
	return op.Resource("foos.v2.example.com", func(r *dsl.Resource) {
		crd.Describe[foo](r, func(s *crd.Schema) { s.Kind = "Foo" }, crd.Also[oldFoo]("v1"))
		r.Convert("v1", to, from)
	})
}

// copies returns a function that sets a field to the value of another.
func copies(from, to string, change func(int64) int64) dsl.ConvertFunc {
	return func(object, out map[string]any) error {
		value, _ := dsl.MustParsePath(from).In(object)
		n, _ := value.(int64)
		return convert.Put(out, dsl.MustParsePath(to), change(n))
	}
}

func TestConversionsThatLoseSomethingAreFound(t *testing.T) {
	same := func(n int64) int64 { return n }
	for name, tt := range map[string]struct {
		to, from dsl.ConvertFunc
		want     []string
	}{
		"nothing is lost": {copies("spec.replicas", "spec.size", same), copies("spec.size", "spec.replicas", same), nil},
		"a value is rounded": {
			copies("spec.replicas", "spec.size", func(n int64) int64 { return n / 10 }), copies("spec.size", "spec.replicas", func(n int64) int64 { return 10 * n }),
			[]string{`^spec.replicas was [0-9]+, and is [0-9]+ after the way from v1 to v2 and back, as for \{"spec":\{"replicas":[0-9]+\}\}$`},
		},
		"a value breaks a bound": {
			copies("spec.replicas", "spec.size", func(n int64) int64 { return -1 - n }), copies("spec.size", "spec.replicas", func(n int64) int64 { return -1 - n }),
			[]string{"^from v1 it becomes invalid in v2: spec.size ", "^from v2 it becomes invalid in v1: spec.replicas "},
		},
		"a field is missing": {nil, nil, []string{"^from v1 it becomes invalid in v2: spec.size is required", "^from v2 it becomes invalid in v1: spec.replicas is required"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := described(tt.to, tt.from)
			faults, err := Check(r)
			if err != nil {
				t.Fatal(err)
			}
			if len(faults) != len(tt.want) {
				t.Fatalf("Check() = %v, want %d faults", faults, len(tt.want))
			}
			for i, want := range tt.want {
				if got := faults[i].Error(); !regexp.MustCompile(want).MatchString(got) || faults[i].Version != "v1" {
					t.Errorf("fault of %s: %s, want %s", faults[i].Version, got, want)
				}
			}
			again, err := Check(r)
			if diff := cmp.Diff(texts(faults), texts(again)); diff != "" || err != nil {
				t.Errorf("another check finds other faults: %s, %v", diff, err)
			}
		})
	}
}

func texts(faults []*Fault) (out []string) {
	for _, fault := range faults {
		out = append(out, fault.Error())
	}
	return out
}

func TestTextsMatchTheirPatterns(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(1, 1))}
	for _, pattern := range []string{`^[a-z]+:[0-9]{1,4}$`, `^(a|b)?c*$`, `^\d{3}-\w+$`, `^[^a-z]{2}.$`, `^(?:x|yz)+$`} {
		for range 20 {
			if got := g.matching(pattern); !regexp.MustCompile(pattern).MatchString(got) {
				t.Errorf("%q does not match %s", got, pattern)
			}
		}
	}
	if got := g.matching("("); strings.Trim(got, letters) != "" {
		t.Errorf("a pattern that cannot be read gives %q", got)
	}
}
