// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package form_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// house has every kind of field.
type house struct {
	Name   string            `yaml:"name" required:"true" doc:"What it is called."`
	Colour colour            `yaml:"colour" default:"red" doc:"How it looks."`
	Floors *int8             `yaml:"floors" min:"1" doc:"How many."`
	Cellar uint8             `yaml:"cellar" doc:"How deep."`
	Area   float64           `yaml:"area" doc:"How large."`
	Lit    bool              `yaml:"lit" doc:"Whether there is light."`
	Warm   time.Duration     `yaml:"warm" doc:"For how long."`
	Owners form.Texts        `yaml:"owners" doc:"Whose it is."`
	Rooms  []room            `yaml:"rooms" unless:"hall" required:"true" doc:"What is in it."`
	Hall   *room             `yaml:"hall" doc:"The only room."`
	Labels map[string]string `yaml:"labels" doc:"Labels."`
	Doors  map[string]int    `yaml:"doors" min:"1" doc:"How wide they are."`
	Guests []string          `yaml:"guests" unique:"true" doc:"Who comes."`
	Notes  any               `yaml:"notes" doc:"Anything."`
	Since  year              `yaml:"since" doc:"How old."`
}

type room struct {
	Name string `json:"name" required:"true" doc:"What it is called."`
}

type colour string

func (colour) Choices() (string, []string) { return "colour", []string{"red", "green"} }

type year struct{ int }

func (y *year) UnmarshalText(text []byte) error {
	if _, err := fmt.Sscan(string(text), &y.int); err != nil {
		return errors.New("want a year")
	}
	return nil
}

func node(t testing.TB, text string) *yaml.Node {
	t.Helper()
	document := &yaml.Node{}
	if err := yaml.Unmarshal([]byte(text), document); err != nil {
		t.Fatal(err)
	}
	return document.Content[0]
}

func said(d *form.Decoder) string {
	var lines []string
	for _, f := range d.Faults {
		lines = append(lines, fmt.Sprintf("%d:%d %s: %s", f.Line, f.Column, f.At, f.Message))
	}
	return strings.Join(lines, "\n")
}

func TestAStructIsReadStrictly(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"all of it": {
			"{name: a, colour: green, floors: 2, cellar: 0, area: 5, lit: true, warm: 1h, owners: x, rooms: [{name: b}], labels: {a: ''}, notes: [1, {a: null}], since: '1900'}", "",
		},
		"a list of texts":               {"{name: a, hall: {name: b}, owners: [x, y]}", ""},
		"what is unknown, nearly right": {"{name: a, hall: {name: b}, colur: red}", `1:28 colur: unknown field (did you mean "colour"?)`},
		"what is unknown":               {"{name: a, hall: {name: b, zz: 1}}", "1:27 hall.zz: unknown field (want name)"},
		"what is missing":               {"{hall: {}}", "1:8 hall: name is required\n1:1 : name is required"},
		"one of two that is missing":    {"{name: a}", "1:1 : rooms is required"},
		"what is mistyped is not missing": {
			"{nam: a, roms: []}",
			"1:2 nam: unknown field (did you mean \"name\"?)\n1:10 roms: unknown field (did you mean \"rooms\"?)",
		},
		"a key twice":         {"{name: a, hall: {name: b}, name: c}", "1:28 name: the key is there twice (first in line 1)"},
		"an invalid key":      {"{name: a, hall: {name: b}, [a]: c}", "1:28 : want text for a key, found a list"},
		"other kinds":         {"{name: 5, rooms: x, hall: [], labels: 1}", "1:8 name: want text, found the number 5 (put it in quotes)\n1:18 rooms: want a list, found the text \"x\"\n1:27 hall: want a map, found a list\n1:39 labels: want a map, found the number 1"},
		"nothing":             {"{name: , rooms: [], hall: }", "1:8 name: must not be empty\n1:17 rooms: must not be empty\n1:27 hall: must not be empty"},
		"empty text":          {"{name: '', rooms: [{name: ''}], owners: ['']}", "1:8 name: must not be empty\n1:27 rooms[0].name: must not be empty\n1:42 owners[0]: must not be empty"},
		"an unknown word":     {"{name: a, hall: {name: b}, colour: rod}", `1:36 colour: unknown colour "rod" (did you mean "red"?)`},
		"no word":             {"{name: a, hall: {name: b}, colour: 1}", "1:36 colour: want one of red, green, found the number 1"},
		"numbers":             {"{name: a, hall: {name: b}, floors: 0, cellar: -1, area: x}", "1:36 floors: must be at least 1\n1:47 cellar: must not be negative\n1:57 area: want a number, found the text \"x\""},
		"large numbers":       {"{name: a, hall: {name: b}, floors: 300, cellar: 300}", "1:36 floors: the number is too large\n1:49 cellar: the number is too large"},
		"true or false":       {"{name: a, hall: {name: b}, lit: yes please}", `1:33 lit: want true or false, found the text "yes please"`},
		"durations":           {"{name: a, hall: {name: b}, warm: 5}", "1:34 warm: want a duration such as 30s or 10m, found the number 5"},
		"a negative duration": {"{name: a, hall: {name: b}, warm: -5s}", "1:34 warm: must be more than zero"},
		"text or a list":      {"{name: a, hall: {name: b}, owners: {}}", "1:36 owners: want text or a list, found a map"},
		"text with a form":    {"{name: a, hall: {name: b}, since: x}", "1:35 since: want a year"},
		"a key that is empty": {"{'': 1, hall: {name: b}}", "1:2 [\"\"]: unknown field (want one of name, colour, floors, cellar, area, lit, warm, owners, rooms, hall, labels, doors, guests, notes, since)\n1:1 : name is required"},
		"an empty map":        {"{name: a, hall: {name: b}, doors: {}}", "1:35 doors: must not be empty"},
		"a text twice":        {"{name: a, hall: {name: b}, guests: [x, y, x, '']}", "1:46 guests[3]: must not be empty\n1:43 guests[2]: \"x\" is in the list twice"},
		"a strange key":       {"{name: a, hall: {name: b}, labels: {'a.b/c': 1}}", `1:46 labels["a.b/c"]: want text, found the number 1 (put it in quotes)`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := node(t, test.text)
			d := form.NewDecoder(root)
			d.Value("", root, &house{})
			if diff := cmp.Diff(test.want, said(d)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPlainValueIsReadAsItsNodeIs(t *testing.T) {
	plain := map[string]any{
		"name": "a", "floors": int64(2), "area": 1.5, "lit": true, "notes": map[string]any{"a": []any{int64(1), 1e30, nil}}, "hall": map[string]any{"name": "b"},
	}
	two := int8(2)
	want := house{Name: "a", Floors: &two, Area: 1.5, Lit: true, Notes: plain["notes"], Hall: &room{Name: "b"}}
	root := form.Node(plain)
	d, got := form.NewDecoder(root), house{}
	d.Value("", root, &got)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(house{}, year{})); diff != "" || len(d.Faults) > 0 {
		t.Errorf("%s\nread (-want +got):\n%s", said(d), diff)
	}
}

func TestAStructOfAGoAuthorIsReadAsJSONIs(t *testing.T) {
	type inner struct {
		Deep string `json:"deep"`
	}
	type params struct {
		*inner
		Inner inner           `json:"inner"`
		Times int8            `json:"times"`
		Raw   json.RawMessage `json:"raw"`
		Bytes []byte          `json:"bytes"`
		Pair  [2]int          `json:"pair"`
		Plain string
		Ports map[int]string `json:"ports"`
	}
	root := node(t, "{inner: '${x}', times: null, raw: {a: [1]}, bytes: YQ==, pair: [1, 2], Plain: '', zz: 1, ports: {80: http}}")
	d, got := form.NewDecoder(root), params{Times: 3}
	d.JSON, d.What, d.Computed = true, "parameter", func(text string) bool { return strings.HasPrefix(text, "${") }
	d.Value("with", root, &got)
	want := params{Times: 3, Raw: json.RawMessage(`{"a":[1]}`), Bytes: []byte("a"), Pair: [2]int{1, 2}, Ports: map[int]string{80: "http"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(params{})); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if got, want := said(d), "1:83 with.zz: unknown parameter (want one of inner, times, raw, bytes, pair, Plain, ports)"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

func TestThePathHasItsSteps(t *testing.T) {
	p := form.Path("").Key("a").Index(2).Key("b.c/[d]").Key("e").Index(0).Index(1)
	if want := `a[2]["b.c/[d]"].e[0][1]`; string(p) != want {
		t.Errorf("the path is %s, want %s", p, want)
	}
	if diff := cmp.Diff([]string{"a", "2", "b.c/[d]", "e", "0", "1"}, p.Steps()); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestWhatIsReadIsDescribed(t *testing.T) {
	s := form.Describe(reflect.TypeFor[house](), nil)
	if diff := cmp.Diff([]string{"name"}, s.Required); diff != "" {
		t.Errorf("required (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]*form.Schema{form.OneRequired("rooms", "hall")}, s.AllOf); diff != "" {
		t.Errorf("one of two (-want +got):\n%s", diff)
	}
	if s.Properties["doors"].MinProperties != 1 || !s.Properties["guests"].UniqueItems {
		t.Error("doors may be empty, or guests come twice")
	}
}

// tree is a struct of others, which has itself within it and a field that is a number or more of the same.
type tree struct {
	Name  string          `json:"name"`
	Tags  []string        `json:"tags"`
	Below map[string]tree `json:"below"`
	Size  size            `json:"size"`
}

type size struct {
	number int
	of     *tree
}

// sizeForm is the form of a size, which cannot have one itself.
type sizeForm struct{ *size }

func (s sizeForm) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode {
		return d.Value(at, n, &s.number)
	}
	return d.Value(at, n, &s.of)
}

func (s sizeForm) DescribeForm(d *form.Describer) *form.Schema {
	return &form.Schema{OneOf: []*form.Schema{{Type: "integer"}, d.Of(reflect.TypeFor[tree]())}}
}

// treeForm describes a tree once.
type treeForm struct{ *tree }

func (f treeForm) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	return d.Struct(at, n, f.tree, nil)
}

func (f treeForm) DescribeForm(d *form.Describer) *form.Schema {
	return d.Define("tree", func() *form.Schema { return d.Struct(reflect.TypeFor[tree]()) })
}

// forest has a tree among fields of ours.
type forest struct {
	First planted `yaml:"first" doc:"The first."`
}

type planted struct{ tree }

func foreign() *form.Foreign {
	return &form.Foreign{Stray: "trees stand under below", Form: func(value any) form.Form {
		switch v := value.(type) {
		case *tree:
			return treeForm{v}
		case *size:
			return sizeForm{v}
		}
		return nil
	}}
}

func (p *planted) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	within := *d
	within.Foreign = foreign()
	ok := within.Value(at, n, &p.tree)
	d.Faults = within.Faults
	return ok
}

func (p *planted) DescribeForm(d *form.Describer) *form.Schema {
	within := *d
	within.Foreign = foreign()
	return within.Of(reflect.TypeFor[tree]())
}

func TestAStructOfOthersIsReadStrictlyAsFarAsItGoes(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"text and lists may be empty": {"{first: {name: '', tags: [], size: 3, below: {a: {size: {name: b}}}}}", ""},
		"nothing is nothing":          {"{first: {name: }}", "1:16 first.name: must not be empty"},
		"a near name":                 {"{first: {below: {a: {nam: b}}}}", `1:22 first.below.a.nam: unknown field (did you mean "name"?)`},
		"a name like none":            {"{first: {size: {zzzz: b}}}", "1:17 first.size.zzzz: unknown field (trees stand under below)"},
		"another kind":                {"{first: {size: x, below: []}}", "1:16 first.size: want a whole number, found the text \"x\"\n1:26 first.below: want a map, found a list"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := node(t, test.text)
			d := form.NewDecoder(root)
			d.Value("", root, &forest{})
			if diff := cmp.Diff(test.want, said(d)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatHasItselfWithinItIsDescribedOnce(t *testing.T) {
	s := form.Describe(reflect.TypeFor[forest](), nil)
	if got := s.Properties["first"].Ref; got != "#/$defs/tree" {
		t.Errorf("the first is %s", got)
	}
	tree := s.Defs["tree"]
	if got := tree.Properties["below"].AdditionalProperties.(*form.Schema).Ref; got != "#/$defs/tree" {
		t.Errorf("those below are %s", got)
	}
	if tree.Properties["name"].MinLength+tree.Properties["tags"].MinItems != 0 {
		t.Error("text or lists must not be empty")
	}
}

// FuzzRead holds that no document makes the decoder panic or take what the schema's kinds exclude, and that
// each fault has a place.
func FuzzRead(f *testing.F) {
	f.Add("{name: a, hall: {name: b}}")
	f.Add("{name: 5, rooms: [x, {name: }], labels: {a: 1}, notes: [1, 2.5, .nan, 99999999999999999999]}")
	f.Add("{name: a, floors: 0x10, since: 2000-01-01, owners: [[a]], ? [a] : b}")
	f.Fuzz(func(t *testing.T, text string) {
		document := &yaml.Node{}
		if yaml.Unmarshal([]byte(text), document) != nil || len(document.Content) == 0 || strings.ContainsAny(text, "*&<") {
			return
		}
		root := document.Content[0]
		d, got := form.NewDecoder(root), house{}
		d.Value("", root, &got)
		for _, fault := range d.Faults {
			if fault.Line < 1 || fault.Column < 1 || fault.Message == "" || strings.Contains(fault.Message, "\n") {
				t.Errorf("a fault without a place or with lines: %+v", fault)
			}
		}
		if len(d.Faults) == 0 && (got.Name == "" || got.Hall == nil && len(got.Rooms) == 0) {
			t.Errorf("it takes what lacks a field: %+v", got)
		}
	})
}
