// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/dsl/source"
	"github.com/handwerk-dev/handwerk/samples/functions"
)

// beyond are the faults that the schema does not find, by their messages, and the reasons for that.
func beyond() []beyondSchema {
	return []beyondSchema{
		{"what stands in an expression, or in ${…}, is CEL", []string{
			`unknown (variable|relation|child|index|entry) `, `: unknown parameter "\w+"`, `unknown function "\w+"( \(did you mean "\w+"\?\))?$`, `: unexpected `, ` closes nothing`,
			` is no name for a let: `, `the lets need each other in a circle: `, `there is a let \w+ already \(at `, ` reads \w+, (which is not there here|and a macro )`, ` is not there in a let of the operator`, `let \w+ \(at \S+\): self is not for startup`, `: want true or false, found a whole number`,
			` is no operator: `, `write && for and`, ` has no closing [}']$`, ` is (not|never) known to a `, ` is not there in (a schedule|an index|a relation|at|runAgainAfter)\b`, `write timestamp\(`, `: a key (of an index )?is text, a number or true or false`, `the result is `,
			`it (runs for deletions and )?reads (its own outcome|handlers\.)`, ` read each other's outcomes`, `read handlers as a whole`, `a condition has a when of its own`, `is about entries of set`,
			`name the child that is meant`, `is the same for every item`, `want one expression: `, `a key cannot have \$\{…\}`,
			`: generate\(\) (makes|would|cannot) `, `current has no child with `,
		}},
		{"whether a text has an expression, and what that gives", []string{
			`delete: want an expression`, `(delete|forEach): want a list or a map, found `,
		}},
		{"which fields an object has, its own schema says", []string{
			`unknown field "\w+" (in \w+|\()`, ` \(\S+\) has no field `, ` are never equal`, `cannot use \S+ with `,
		}},
		{"which functions there are, and what parameters they take, the program says that runs them", []string{
			`unknown function "[\w.]+".*; registered are `, ` takes no parameters`, `\bwith\.\S+: `,
		}},
		{"a field in short form is a text with a grammar of its own", []string{
			`\.schema\.(spec|types)\.\S+: unknown (type|marker|format|list type|field) `,
			`\.schema\.spec\.\S+: want (an integer|a number|true or false|JSON|a space between markers)`,
			`\.schema\.spec\.\S+: the (value|marker|default|pattern|elements|minimum|cost) `,
			`(m(in|ax)\w+|enum) is (for|above) `, `uniqueItems is short for `, `a message stands behind the validation`,
			`the type \w+ contains itself`, `required belongs to the field`, `string is a type already`, `want a name of letters and digits for a type`,
		}},
		{"what a CRD may hold, the code of the API server says", []string{
			`openAPIV3Schema\S*: must (be specified|not be empty (at|for) )`, `openAPIV3Schema\S*: unknown (value|required field) `,
			`openAPIV3Schema\S*: the (default|minimum) `, `undefined field '`, `undeclared reference to '`, `cel expression must evaluate to a bool`,
			`cannot be compared with what they were`, `must have a default or be a required property`,
			`columns\[\d\].path: (unknown field|want a path|the bracket)`, `there is a column "url" already`,
		}},
		{"names have rules of Kubernetes and of ours, which no editor could explain by a pattern", []string{
			`want a (DNS name|DNS label|namespace|kind in CamelCase)`, `want the name of an object: `, `a DNS-1035 label must `,
			`is no key: `, `the key is not one that objects may have: `, ` is no name for a child`, `want letters, digits, '-', '_' and '.'`, `want letters, digits and '_', `,
			`kind and listKind may not be the same`, `a resource with a schema (needs|is in) `, `of a resource with a schema needs a dot`,
			`reading (resource|field path) `, `want a (name or a prefix|prefix that the operator had)`, `want a name that the operator had`,
		}},
		{"selectors, schedules and times have a grammar of their own", []string{
			`want a field selector such as `, ` is no quantity: `, `reading schedule `, `the time zone "\S+" is not known`, `note.at: want a time such as `,
		}},
		{"one value stands for another that must be there, somewhere else", []string{
			`unknown handler `, `is declared later; handlers run in declared order`, `a handler cannot come after itself`,
			`the (id|name) is (used|named|given) twice|is the present name of the operator|a (handler|step of handler \S+) has this id|handler \S+ has the id of one of its steps|another handler had this id`, ` is declared twice: `, `: a group has each name once$`, `there is a child of this name already`, `is the same object as `,
			`the condition Ready is set twice`, ` children of one kind are watched in one version`, `the children need each other in a circle`,
			`the resource (owns nothing|has no related objects|has no resync period)`, `the operator has no indexes`, `the handler has no timer`, `its kind is worked out`, `reads the child, which none applies and forgets`,
			`the child is not deleted with its owner`, `has no order in that deletion`, `it would be deleted as soon as it is made`, `ready: (needs a handler|is not for|handler \w+ sets)`, `cache metadata (does not hold|leaves a part of it out)`,
			`(keep|keep \(at \S+\)) leaves .* out of the cache`, `, which (keep \(at \S+\)|cache metadata) leaves out`, `handler \S+ reads \S+, so a change of it counts`, ` make one object, `,
		}},
		{"fields that need or exclude each other: an editor would show the whole map as wrong, and offer less", []string{
			` is only for (handlers|cache|mode|modes|timers|cron|drift)\b`, ` is for (children|handlers) with forEach`, `burst: needs qps`, `the TTL deletes the object`, `that the TTL has deleted meanwhile`,
			`excludes (cron|every, pause, cron and idle|openAPIV3Schema)`, ` is not for handlers (with at|of deletions alone)`, `values is required for operator`, `says nothing with finalizer: false`, `must be more than `,
			`cannot stand beside labels with`, `is not for related objects`,
		}},
		{"faults of several states of a machine together, which a schema of one state cannot find", []string{
			`unknown state "`, `there are two states `, `no way (leads|out)`, `a way leads back: `, `is never taken: `, `can never be taken`,
			` is (not )?one of deletion`, `is terminal, so only a person leaves it`, `is not for a (terminal state|manual transition)`,
			`has neither enter nor during`, ` is only for (terminal states|machines)`, `there are no states of deletion`, `from which objects go by its transitions`,
			`want a word such as Pending`, `want the state to go to`, `want a field of the status, such as rollout`, ` is taken: `, `another machine has its book in `,
		}},
		{"fields and conditions that a machine sets, others must leave to it", []string{
			`, which the machine (keeps|does)`, ` has the condition Going, too`, `says whether the state is ready`, `want the type of a condition, such as `,
			`keeps (its state here|this itself): want `, `where the machine keeps its state`, `does not hold the status`, `is something else in another state`,
		}},
		{"a map of any form has a few words that are not for it", []string{
			`set.status.(conditions|observedGeneration): is kept by the engine`,
		}},
		{"there are other documents", []string{
			`reading part `, `want a path from the directory of the configuration`, `the parameter \w+ of \S+ is required`, `unknown parameter "\w+"`, `the parts use each other in a circle: `,
			`the part has steps, `, `which have no object \(used at `, `with: is for call: the values of a part`, `includeWhen: is for handlers that apply`, `a part has a file of its own`, `there is no part in here`,
		}},
		{"a part says what its parameters are", []string{
			`use\.with\.\w+: want `, `should be less than or equal to`, `the value may be absent, and the parameter is required`, `params is not there in the values`, `is no name for a parameter: `, `is no name for children: `, `is for parts that make children`, `is another one than that of child`, `the child needs child \w+ of the same group`, `is not there: a relation knows those above it`, `name the relation that is meant`, `does not hold what the template of child`, `does not hold the status of the children`, `which fields the template of child \w+ sets is not known`,
			`parameters\.\w+: (unknown type|immutable and validation|want an integer)`, `there is a parameter \w+ already`,
		}},
		{"there are other documents of the operator", []string{
			`resources: want at least one`, `must be in one document only`, ` is another operator than `, `there is no operator in here`,
		}},
		{"an action looks at its own form, too", []string{
			`this line is refused`, `note.missing: this is missing`, `the note is refused`,
		}},
	}
}

type beyondSchema struct {
	why  string
	says []string
}

// judge reads configurations twice, with the loader and with the published schema, and holds one against the
// other. The schema is read by an implementation that is not ours.
type judge struct {
	registry *actions.Registry
	schema   *jsonschema.Schema
	beyond   *regexp.Regexp
	// read reads a text that is no operator; nil for operators.
	read func(data []byte) error
}

func newJudge(t *testing.T, registry *actions.Registry) *judge {
	t.Helper()
	schema := schemaOf(t, registry, config.Schema)
	var says []string
	for _, b := range beyond() {
		says = append(says, b.says...)
	}
	return &judge{registry: registry, schema: schema, beyond: regexp.MustCompile(strings.Join(says, "|"))}
}

// faults are what the loader finds. The schema must refuse a text with faults of form, and no other one.
func (j *judge) faults(t *testing.T, data []byte) source.Faults {
	t.Helper()
	read := j.read
	if read == nil {
		read = func(data []byte) error { _, err := config.Parse("", data, j.registry); return err }
	}
	err := read(data)
	faults, ok := errors.AsType[source.Faults](err)
	if err != nil && !ok {
		t.Fatalf("an error that is no faults: %v", err)
	}
	j.agrees(t, j.schema, data, faults)
	return faults
}

// agrees holds that a schema refuses a text with faults of form, and no other one.
func (j *judge) agrees(t *testing.T, schema *jsonschema.Schema, data []byte, faults source.Faults) {
	t.Helper()
	ofForm := slices.DeleteFunc(slices.Clone(faults), func(f source.Fault) bool {
		return j.beyond.MatchString(f.Path + ": " + f.Message)
	})
	documents, err := documentsOf(data)
	if err != nil {
		return // an editor reports that without a schema
	}
	var refusals []error
	for _, document := range documents {
		refusals = append(refusals, schema.Validate(document))
	}
	switch refused := errors.Join(refusals...); {
	case refused != nil && len(ofForm) == 0:
		t.Errorf("the schema refuses what the loader takes, or what is said to be beyond a schema:\n%v\nthe loader says:\n%v", refused, faults)
	case refused == nil && len(ofForm) > 0:
		t.Errorf("the schema takes what the loader refuses: %v", ofForm)
	}
}

// documentsOf decodes the documents of a text as an editor would.
func documentsOf(data []byte) (out []any, err error) {
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var document any
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		if document != nil {
			out = append(out, plain(document))
		}
	}
}

// plain takes out what only YAML has.
func plain(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = plain(v[key])
		}
	case map[any]any:
		out := map[string]any{}
		for key := range v {
			out[fmt.Sprint(key)] = plain(v[key])
		}
		return out
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case interface{ Format(string) string }:
		return v.Format("2006-01-02")
	}
	return value
}

// TestTheSchemaTakesWhatTheLoaderTakes has the good documents of the repository; the bad ones are judged where their
// messages are held.
func TestTheSchemaTakesWhatTheLoaderTakes(t *testing.T) {
	standard := newJudge(t, functions.Registry())
	taken := 0
	for glob, judge := range map[string]*judge{
		"testdata/good/*.yaml":           newJudge(t, registry(t)),
		"../../samples/*/operator*.yaml": standard, "../../samples/kopf/[0-9]*.yaml": standard, "../../deploy/*/operator*.yaml": standard, "../../*.md": standard, "../../docs/*.md": standard,
	} {
		files, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range whole(file, data) {
				if len(judge.faults(t, text)) == 0 {
					taken++
				}
			}
		}
	}
	if taken < 20 {
		t.Errorf("there are %d good documents, want more", taken)
	}
}

var fenced = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// whole are the whole configurations in a file: all of it, or examples in a text for people.
func whole(file string, data []byte) [][]byte {
	if filepath.Ext(file) != ".md" {
		return [][]byte{data}
	}
	var out [][]byte
	for _, match := range fenced.FindAllSubmatch(data, -1) {
		if bytes.Contains(match[1], []byte("kind: "+config.Kind+"\n")) {
			out = append(out, match[1])
		}
	}
	return out
}

// TestNothingIsBeyondTheSchemaForNothing holds that there is a message of every kind that the table has.
func TestNothingIsBeyondTheSchemaForNothing(t *testing.T) {
	files, err := filepath.Glob("testdata/messages/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no messages (%v)", err)
	}
	var said []byte
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, data...)
	}
	for _, b := range beyond() {
		for _, says := range b.says {
			if !regexp.MustCompile("(?m)" + says).Match(said) {
				t.Errorf("no message is of the kind %s (%s)", says, b.why)
			}
		}
	}
}
