// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package form_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// estate has forms at all places: in lists, under free keys, one of two, and one that contains itself.
type estate struct {
	Houses []house          `yaml:"houses" mistaken:"buildings" doc:"What stands on it."`
	Paths  map[string]route `yaml:"paths" doc:"Ways, by name."`
	When   form.Predicate   `yaml:"when" doc:"Whether it is open."`
	Wood   forest           `yaml:"wood" doc:"The wood."`
	Tags   map[string]any   `yaml:"tags" doc:"What people say of it."`
	Owner  string           `yaml:"owner" required:"true" doc:"Whose it is."`
	Fence  fence            `yaml:"fence" doc:"What is around it."`
}

// fence is made of one of two things, which its schema says beside its fields.
type fence struct {
	Wood  int `yaml:"wood" doc:"How many boards."`
	Stone int `yaml:"stone" doc:"How many stones."`
}

func (f *fence) ReadForm(d *form.Decoder, at form.Path, n *yaml.Node) bool {
	return d.Struct(at, n, f, nil)
}

func (f *fence) DescribeForm(d *form.Describer) *form.Schema {
	out := d.Struct(reflect.TypeFor[fence]())
	out.OneOf = []*form.Schema{{Required: []string{"wood"}}, {Required: []string{"stone"}}}
	return out
}

type route struct {
	Length int    `yaml:"length" default:"1" doc:"How long it is."`
	To     string `yaml:"to" required:"true" doc:"Where it leads."`
}

func outline() *form.Outline {
	return form.NewOutline(form.Describe(reflect.TypeFor[estate](), nil))
}

// told is a field in one line.
func told(f form.Field) string {
	out := fmt.Sprintf("%s <%s> %s", f.Place, f.Type, f.Doc)
	if f.Required {
		out += " required"
	}
	if f.Default != "" {
		out += " default " + f.Default
	}
	return out
}

func TestAFieldIsFoundByItsPath(t *testing.T) {
	for name, test := range map[string]struct{ path, want string }{
		"the whole":                        {"", " <map> "},
		"a field":                          {"owner", "owner <text> Whose it is. required"},
		"a field in a list":                {"houses.colour", "houses[].colour <red, green> How it looks. default red"},
		"with the brackets of a list":      {"houses[].colour", "houses[].colour <red, green> How it looks. default red"},
		"with an index, as in a fault":     {"houses[12].rooms[0].name", "houses[].rooms[].name <text> What it is called. required"},
		"with a dot at its beginning":      {".when", "when <CEL condition> Whether it is open."},
		"under any key":                    {"paths.length", "paths.<name>.length <whole number> How long it is. default 1"},
		"under the word for any key":       {"paths.<name>.to", "paths.<name>.to <text> Where it leads. required"},
		"under a key, as in a fault":       {"paths.home.to", "paths.<name>.to <text> Where it leads. required"},
		"under a key in quotes":            {`paths["a.b"].to`, "paths.<name>.to <text> Where it leads. required"},
		"the value under a key":            {"paths.home", "paths.<name> <map> Ways, by name."},
		"below a value of any form":        {"tags.a.b", "tags.<name>.<name> <anything> What people say of it."},
		"a form that contains itself":      {"wood.first.below.tags", "wood.first.below.<name>.tags <list of text> "},
		"a list of maps, by its type":      {"houses", "houses <list of maps> What stands on it."},
		"a field with two kinds of values": {"houses.owners", "houses[].owners <text or list of text> Whose it is."},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := outline().Find(test.path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, told(got)); diff != "" {
				t.Errorf("Find(%q) (-want +got):\n%s", test.path, diff)
			}
		})
	}
}

func TestAnUnknownPathSaysWhatWasMeant(t *testing.T) {
	for name, test := range map[string]struct{ path, want string }{
		"a mistyped field":                  {"houses.color", `unknown field "color" in houses[] (did you mean "colour"?)`},
		"a mistyped field at the beginning": {"house.name", `unknown field "house" (did you mean "houses"?)`},
		"the name that others have for it":  {"buildings", `unknown field "buildings" (did you mean "houses"?)`},
		"the beginning of a name":           {"houses.guestbook", `unknown field "guestbook" in houses[] (did you mean "guests"?)`},
		"a field that is elsewhere":         {"rooms.name", `unknown field "rooms" (did you mean houses.rooms.name?)`},
		"a mistyped field under a key":      {"paths.lengths", `unknown field "lengths" in paths.<name> (did you mean "length"?)`},
		"a field of a text":                 {"owner.name", `owner is text, and has no field "name"`},
		"a field of a word":                 {"houses.colour.red", `houses[].colour is one of red, green, and has no field "red"`},
		"a field of a condition":            {"when.then", `when is a CEL condition, and has no field "then"`},
		"no such field":                     {"houses.zzz", `unknown field "zzz" in houses[] (want one of name, colour, floors, cellar, area, lit, warm, owners, rooms, hall, labels, doors, guests, notes, since)`},
		"a field that a map cannot have":    {"fence.glass", `unknown field "glass" in fence (want one of wood, stone)`},
		"half a bracket":                    {`houses["`, `unknown field "\"" in houses[] (want one of name, colour, floors, cellar, area, lit, warm, owners, rooms, hall, labels, doors, guests, notes, since)`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := outline().Find(test.path)
			if err == nil {
				t.Fatalf("found %s", told(got))
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("Find(%q) (-want +got):\n%s", test.path, diff)
			}
		})
	}
}

func TestFieldsStandInTheOrderOfTheirStructAfterThoseThatAreRequired(t *testing.T) {
	o := outline()
	var got []string
	for _, b := range o.Blocks(o.Whole()) {
		for _, f := range b.Fields {
			got = append(got, f.Name)
		}
	}
	if diff := cmp.Diff([]string{"owner", "houses", "paths", "when", "wood", "tags", "fence"}, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestMapsAreFoundWhereTheyStand(t *testing.T) {
	o := outline()
	for path, want := range map[string][]string{
		"houses": {"houses[]"}, "paths": {"paths.<name>"}, "houses.rooms": {"houses[].rooms[]"}, "houses.hall": {"houses[].hall"},
		"wood.first": {"wood.first"}, "wood.first.size": nil, "owner": nil, "tags": nil,
	} {
		f, err := o.Find(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range o.Blocks(f) {
			got = append(got, b.Place)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("maps at %s (-want +got):\n%s", path, diff)
		}
	}
}

func TestAMapIsAPartOfOneThatHasAllItsFields(t *testing.T) {
	o := outline()
	blockAt := func(path string) form.Block {
		f, err := o.Find(path)
		if err != nil {
			t.Fatal(err)
		}
		return o.Blocks(f)[0]
	}
	room, hall, house, path := blockAt("houses.rooms"), blockAt("houses.hall"), blockAt("houses"), blockAt("paths")
	if !room.Part(hall) || !hall.Part(room) || !room.Part(house) || house.Part(room) || room.Part(path) {
		t.Error("a room is not a part of a hall and of a house, or it is one of a path")
	}
}
