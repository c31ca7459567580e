// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// placed writes joined faults with their places.
func placed(t *testing.T, err error) string {
	t.Helper()
	var lines []string
	var walk func(error)
	walk = func(err error) {
		if faulty, ok := err.(*shape.Misfit); ok { //nolint:errorlint // each is looked at by itself
			place := strings.Join(faulty.Path, ".")
			if faulty.Line > 0 { // the words are those of the language
				lines = append(lines, fmt.Sprintf("%s@%d:%d", place, faulty.Line, faulty.Column))
				return
			}
			lines = append(lines, place+": "+faulty.Message)
			return
		}
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok {
			t.Fatalf("%v is not a Misfit", err)
		}
		for _, one := range joined.Unwrap() {
			walk(one)
		}
	}
	if err != nil {
		walk(err)
	}
	return strings.Join(lines, "\n")
}

const head = "apiVersion: v1, kind: ConfigMap, metadata: "

func TestFaultsAreFoundWhenTheConfigurationIsLoaded(t *testing.T) {
	tests := map[string]struct{ config, want string }{
		"nothing": {"{}", "apply: must not be empty"},
		"a name that expressions cannot say": {
			"{my-db: {" + head + "{name: a}}}",
			`apply.my-db: "my-db" is no name for a child: want letters, digits and _, as in children.db`,
		},
		"a word of the language for a name": {
			"{in: {" + head + "{name: a}}}",
			`apply.in: "in" is no name for a child: want letters, digits and _, as in children.db`,
		},
		"a child that is no map":    {"{a: text}", "apply.a: want a map: the child itself (apiVersion, kind, metadata, …), or options with the child under template"},
		"a child that is not there": {"{a: }", "apply.a: want a map: the child itself (apiVersion, kind, metadata, …), or options with the child under template"},
		"neither form":              {"{a: {adopt: never}}", "apply.a: there is no child in here: want the child itself (apiVersion, kind, metadata, …), or options with the child under template"},
		"a mistyped option":         {"{a: {forEech: [1], template: {" + head + "{name: a}}}}", `apply.a.forEech: unknown field (did you mean "forEach"?)`},
		"a mistyped template":       {"{a: {templade: {}}}", `apply.a.templade: unknown field (did you mean "template"?)`},
		"an option that is not known": {
			"{a: {volume: 1, template: {" + head + "{name: a}}}}",
			"apply.a.volume: unknown field (want one of template, forEach, key, limit, includeWhen, readyWhen, ownership, adopt, onDelete, deleteOrder, drift, allow, update, onImmutable, rollout)",
		},
		"an option in the short form":    {"{a: {forEach: [1], " + head + "{name: a}}}", "apply.a.forEach: is an option, beside which the child itself stands under template"},
		"no kind":                        {"{a: {apiVersion: v1, metadata: {name: a}}}", "apply.a: kind is required"},
		"no apiVersion":                  {"{a: {kind: ConfigMap, metadata: {name: a}}}", "apply.a: apiVersion is required"},
		"no metadata":                    {"{a: {apiVersion: v1, kind: ConfigMap}}", "apply.a: metadata is required"},
		"no name":                        {"{a: {template: {" + head + "{}}}}", "apply.a.template.metadata: name is required"},
		"a name that is no text":         {"{a: {" + head + "{name: 1}}}", "apply.a.metadata.name: want text"},
		"an invalid version":             {"{a: {apiVersion: a/b/c, kind: X, metadata: {name: a}}}", "apply.a.apiVersion: want a version, with its group before it unless that is the core group, as in apps/v1"},
		"a name left to the server":      {"{a: {" + head + "{generateName: a-}}}", "apply.a.metadata.generateName: a child is found again by its name, so it cannot be left to the server: give metadata.name, as in ${self.metadata.name}-${key}"},
		"a status":                       {"{a: {" + head + "{name: a}, status: {}}}", "apply.a.status: belongs to whoever controls the child, and cannot be applied"},
		"a template that is a number":    {"{a: {template: 5}}", "apply.a.template: want an object (apiVersion, kind, metadata, …), or one expression that gives one"},
		"a template that is plain text":  {"{a: {template: x}}", "apply.a.template: want an object (apiVersion, kind, metadata, …), or one expression that gives one"},
		"a mistake in an expression":     {"{a: {" + head + "{name: 'a-${slef.x}'}}}", "apply.a.metadata.name@1:5"},
		"item without forEach":           {"{a: {" + head + "{name: '${item}'}}}", "apply.a.metadata.name@1:3"},
		"item in forEach itself":         {"{a: {forEach: '${item}', template: {" + head + "{name: '${item}'}}}}", "apply.a.forEach@1:3"},
		"child in a template":            {"{a: {" + head + "{name: '${child.x}'}}}", "apply.a.metadata.name@1:3"},
		"child in includeWhen":           {"{a: {includeWhen: child.x, template: {" + head + "{name: a}}}}", "apply.a.includeWhen@1:1"},
		"a predicate that is text":       {"{a: {includeWhen: cause, template: {" + head + "{name: a}}}}", "apply.a.includeWhen@1:1"},
		"a predicate in ${}, at fault":   {"{a: {includeWhen: '${slef.x}', template: {" + head + "{name: a}}}}", "apply.a.includeWhen@1:3"},
		"a predicate that is a number":   {"{a: {readyWhen: 1, template: {" + head + "{name: a}}}}", "apply.a.readyWhen: want an expression that is true or false, found the number 1"},
		"forEach without an expression":  {"{a: {forEach: self.spec.x, template: {" + head + "{name: '${item}'}}}}", "apply.a.forEach: want a list or a map, mostly an expression as in ${self.spec.users}"},
		"forEach over a number":          {"{a: {forEach: 3, template: {" + head + "{name: '${item}'}}}}", "apply.a.forEach: want a list or a map, mostly an expression as in ${self.spec.users}, found the number 3"},
		"a key that is the same for all": {"{a: {forEach: [x], key: k, template: {" + head + "{name: '${item}'}}}}", "apply.a.key: is the same for every item: want an expression as in ${item.name}"},
		"a key that is a number":         {"{a: {forEach: [x], key: 1, template: {" + head + "{name: '${item}'}}}}", "apply.a.key: want an expression as in ${item.name}, found the number 1"},
		"a limit of nothing":             {"{a: {forEach: [x], limit: 0, template: {" + head + "{name: '${item}'}}}}", "apply.a.limit: must be at least 1"},
		"a limit that is text":           {"{a: {forEach: [x], limit: many, template: {" + head + "{name: '${item}'}}}}", `apply.a.limit: want a whole number, found the text "many"`},
		"what goes with forEach, alone": {
			"{a: {key: '${self.x}', limit: 1, rollout: {maxUnavailable: 1}, template: {" + head + "{name: a}}}}",
			"apply.a.key: is for children with forEach\napply.a.limit: is for children with forEach\napply.a.rollout: is for children with forEach",
		},
		"words that are not known": {
			"{a: {ownership: ownd, adopt: 5, onDelete: orphaned, template: {" + head + "{name: a}}}}",
			"apply.a.adopt: want one of never, ifUnowned, found the number 5\n" +
				"apply.a.onDelete: unknown onDelete \"orphaned\" (did you mean \"orphan\"?)\n" +
				"apply.a.ownership: unknown ownership \"ownd\" (did you mean \"owned\"?)",
		},
		"a policy for what is not owned": {
			"{a: {ownership: none, onDelete: delete, template: {" + head + "{name: a}}}}",
			"apply.a.onDelete: onDelete delete: an object that is not owned is never deleted",
		},
		"recreating what is not owned": {
			"{a: {ownership: none, onImmutable: recreate, template: {" + head + "{name: a}}}}",
			"apply.a.onImmutable: onImmutable recreate: an object that is not owned is never deleted",
		},
		"an order for what is not deleted": {
			"{a: {deleteOrder: reverse, onDelete: orphan, template: {" + head + "{name: a}}}}",
			"apply.a.deleteOrder: deleteOrder reverse: the child is not deleted with its owner",
		},
		"an order that is not known": {
			"{a: {deleteOrder: reversed, template: {" + head + "{name: a}}}}",
			`apply.a.deleteOrder: unknown deleteOrder "reversed" (did you mean "reverse"?)`,
		},
		"managers that are allowed where drift is not strict": {
			"{a: {drift: fields, allow: [k9s], template: {" + head + "{name: a}}}}",
			"apply.a.allow: allow is only for drift: strict",
		},
		"managers that are none": {
			"{a: {drift: strict, allow: [k9s, 7], template: {" + head + "{name: a}}}}",
			"apply.a.allow.1: want text, found the number 7 (put it in quotes)",
		},
		"words of policies that are not known": {
			"{a: {drift: strct, onImmutable: recreat, template: {" + head + "{name: a}}}}",
			"apply.a.drift: unknown drift \"strct\" (did you mean \"strict\"?)\napply.a.onImmutable: unknown onImmutable \"recreat\" (did you mean \"recreate\"?)",
		},
		"a rollout that is a number": {
			"{a: {forEach: [x], rollout: 1, template: {" + head + "{name: '${item}'}}}}",
			"apply.a.rollout: want a map, as in {maxUnavailable: 1}, found the number 1",
		},
		"a rollout of nothing": {
			"{a: {forEach: [x], rollout: {maxUnavailable: 0, readyWhen: 'true'}, template: {" + head + "{name: '${item}'}}}}",
			"apply.a.rollout.maxUnavailable: want a whole number of at least 1, or a percentage from 1% to 100%, found the number 0",
		},
		"a rollout without a number": {
			"{a: {forEach: [x], rollout: {readyWhen: 'true'}, template: {" + head + "{name: '${item}'}}}}",
			"apply.a.rollout: maxUnavailable is required: a whole number of at least 1, or a percentage from 1% to 100%",
		},
		"a rollout of too many in a hundred": {
			"{a: {forEach: [x], rollout: {maxUnavailable: 101%, readyWhen: 'true'}, template: {" + head + "{name: '${item}'}}}}",
			`apply.a.rollout.maxUnavailable: want a whole number of at least 1, or a percentage from 1% to 100%, found the text "101%"`,
		},
		"a mistyped field of a rollout": {
			"{a: {forEach: [x], rollout: {maxUnavailabel: 1, maxUnavailable: 1, readyWhen: 'true'}, template: {" + head + "{name: '${item}'}}}}",
			`apply.a.rollout.maxUnavailabel: unknown field (did you mean "maxUnavailable"?)`,
		},
		"children that need each other": {
			"{a: {" + head + "{name: 'a${children.c.x}'}}, b: {" + head + "{name: 'b${children.?a.x}'}}, c: {" + head + "{name: \"c${children['b'].x}\"}}}",
			"apply.a: the children need each other in a circle: a → c → b → a",
		},
		"a child that needs itself": {
			"{a: {" + head + "{name: '${children.a.x}'}}}",
			"apply.a: the children need each other in a circle: a → a",
		},
		"a child that is made when it is there": {
			"{a: {includeWhen: has(children.a.x), template: {" + head + "{name: a}}}}",
			"apply.a: the children need each other in a circle: a → a",
		},
		"a circle by way of what is ready": {
			"{a: {readyWhen: has(children.b.x), template: {" + head + "{name: a}}}, b: {" + head + "{name: 'b${children.a.x}'}}}",
			"apply.a: the children need each other in a circle: a → b → a",
		},
		"children as a whole": {
			"{a: {" + head + "{name: a}, data: {n: '${string(size(children))}'}}}",
			"apply.a.data.n: name the child that is meant, as in children.db: children as a whole do not say what to wait for",
		},
		"children as a whole in a predicate": {
			"{a: {includeWhen: size(children) > 0, template: {" + head + "{name: a}}}}",
			"apply.a.includeWhen: name the child that is meant, as in children.db: children as a whole do not say what to wait for",
		},
		"one object twice": {
			"{a: {" + head + "{name: '${self.metadata.name}'}}, b: {template: {" + head + "{name: '${self.metadata.name}'}}}}",
			"apply.b: is the same object as a: ConfigMap ${self.metadata.name}",
		},
		"one object twice, one of them perhaps": {
			"{a: {" + head + "{name: x}}, b: {includeWhen: 'true', template: {" + head + "{name: x}}}}",
			"apply.b: is the same object as a: ConfigMap x",
		},
		"one kind in two versions": {
			"{a: {apiVersion: x.io/v1, kind: X, metadata: {name: x}}, b: {apiVersion: x.io/v2, kind: X, metadata: {name: y}}}",
			"apply.b: is of x.io/v2, but a is of x.io/v1: children of one kind are watched in one version",
		},
		"several at once, in order": {
			"{a: {" + head + "{name: '${x}'}}, b: 1, c: {kind: C}}",
			"apply.b: want a map: the child itself (apiVersion, kind, metadata, …), or options with the child under template\n" +
				"apply.a.metadata.name@1:3\n" +
				"apply.c: apiVersion is required\napply.c: metadata is required",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := build(t, test.config, actions.Build{})
			if diff := cmp.Diff(test.want, placed(t, err)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			if err == nil {
				t.Error("it is taken")
			}
		})
	}
}

func TestWhatIsTaken(t *testing.T) {
	tests := map[string]string{
		"one or the other of one name":     "{a: {includeWhen: self.x, template: {" + head + "{name: x}}}, b: {includeWhen: '!self.x', template: {" + head + "{name: x}}}}",
		"two kinds of one name":            "{a: {" + head + "{name: x}}, b: {apiVersion: v1, kind: Secret, metadata: {name: x}}}",
		"one name in two namespaces":       "{a: {" + head + "{name: x}}, b: {" + head + "{name: x, namespace: other}}}",
		"an object with a field template":  "{a: {apiVersion: v1, kind: PodTemplate, metadata: {name: a}, template: {spec: {}}}}",
		"metadata that is worked out":      "{a: {apiVersion: v1, kind: ConfigMap, metadata: '${self.spec.meta}'}}",
		"a template that is worked out":    "{a: {template: '${self.spec.object}'}}",
		"a predicate in ${}":               "{a: {includeWhen: '${self.spec.on}', template: {" + head + "{name: x}}}}",
		"a predicate with ${ in a text":    "{a: {includeWhen: \"'${' == '}'\", template: {" + head + "{name: x}}}}",
		"a predicate that is plain":        "{a: {includeWhen: true, template: {" + head + "{name: x}}}}",
		"readiness that looks at itself":   "{a: {readyWhen: has(children.a.status), template: {" + head + "{name: x}}}}",
		"a child of another handler":       "{a: {" + head + "{name: '${children.other.metadata.name}'}}}",
		"a list that is written":           "{a: {forEach: [x, '${self.spec.y}'], template: {" + head + "{name: '${item}'}}}}",
		"an escaped dollar":                "{a: {" + head + "{name: '$${x}'}}}",
		"a rollout in so many of hundred":  "{a: {forEach: [x], rollout: {maxUnavailable: 30%, readyWhen: 'true'}, template: {" + head + "{name: '${item}'}}}}",
		"a template that stands in itself": "{a: {template: {apiVersion: v1, kind: PodTemplate, metadata: {name: a}, template: {}}}}",
	}
	for name, config := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := build(t, config, actions.Build{}); err != nil {
				t.Error(placed(t, err))
			}
		})
	}
}
