// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestValuesOfSecretsAreNotCopied holds that values of Secrets are never copied: into annotations, logs or
// Events.
func TestValuesOfSecretsAreNotCopied(t *testing.T) {
	const value = "aHVzaA=="
	scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
		var mu sync.Mutex
		var logged []string
		log := funcr.New(func(prefix, args string) {
			mu.Lock()
			defer mu.Unlock()
			logged = append(logged, prefix+args)
		}, funcr.Options{Verbosity: 9})
		s.Operator.Resource("secrets.v1", func(secret *dsl.Resource) {
			secret.On(scene.CreateAndUpdate(), "changed", s.Note("changed", scene.RetriesAfter(scene.Late), scene.Succeeds))
			secret.OnDelete("left", s.Note("left"))
		})
		s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Log = log })
		s.Create(`{apiVersion: v1, kind: Secret, metadata: {name: web}, data: {key: ` + value + `}}`)
		s.Advance(time.Hour)
		s.Called("changed create", "changed create 2")
		s.Update("secrets.v1", "default", "web", func(o *unstructured.Unstructured) {
			o.Object["data"] = map[string]any{"key": value, "more": value}
		})
		s.Called("changed update")
		secret := s.Get("secrets.v1", "default", "web")
		if text := fmt.Sprint(secret.GetAnnotations()); strings.Contains(text, value) || !strings.Contains(text, "seen") {
			s.T.Errorf("annotations %s", text)
		}
		s.Delete("secrets.v1", "default", "web")
		s.Called("left delete")
		mu.Lock()
		defer mu.Unlock()
		if text := strings.Join(logged, "\n") + fmt.Sprint(s.Events()); strings.Contains(text, value) {
			s.T.Errorf("the value is in logs or Events: %s", text)
		}
	}})
}

// refusesQuoting makes the cluster refuse objects of a resource with their values, as API servers and webhooks do.
func refusesQuoting(s *scene.Stage, resource string, webhook bool, path ...string) {
	s.Refuse(resource, func(o *unstructured.Unstructured) error {
		value, found, _ := unstructured.NestedString(o.Object, path...)
		if !found || !strings.Contains(value, "hush") {
			return nil
		}
		if webhook {
			return errors.New("I do not like " + value)
		}
		at := field.NewPath(path[0], path[1:len(path)-1]...).Key(path[len(path)-1])
		return apierrors.NewInvalid(schema.GroupKind{Group: o.GroupVersionKind().Group, Kind: o.GetKind()}, o.GetName(), field.ErrorList{field.Invalid(at, value, "it is no URL")})
	})
}

// reading is a Foo's resource that names a Secret, with a handler.
func reading(handler string) string {
	return `{resource: foos.v1.example.com, owns: [configmaps.v1], related: [{name: creds, resource: secrets.v1, object: "${self.spec.secret}"}], handlers: [` + handler + `]}`
}

// one is an expression that gives the first value in the open.
const one = `string(base64.decode(related.creds.data.one))`

// TestNoErrorShowsASecret holds that whatever goes wrong with an expression that reads a Secret, its values are not shown in the
// log, in an Event, in a condition or in an annotation: who names the Secret in an object of his own may not read it.
func TestNoErrorShowsASecret(t *testing.T) {
	configMap := func(fields string) string { return `{apiVersion: v1, kind: ConfigMap, ` + fields + `}` }
	handlers := map[string]struct{ handler, says string }{
		"url()":                      {`{id: look, set: {status: {seen: "${url(` + one + `).getHost()}"}}}`, "set.status.seen"},
		"ip()":                       {`{id: look, set: {status: {seen: "${ip(` + one + `).family()}"}}}`, "set.status.seen"},
		"matches()":                  {`{id: look, set: {status: {seen: "${'x'.matches(` + one + `)}"}}}`, "set.status.seen"},
		"int()":                      {`{id: look, log: {message: "${int(` + one + `)}"}}`, "log.message"},
		"duration()":                 {`{id: look, log: {message: "${duration(` + one + `)}"}}`, "log.message"},
		"timestamp()":                {`{id: look, log: {message: "${timestamp(` + one + `)}"}}`, "log.message"},
		"quantity()":                 {`{id: look, log: {message: "${quantity(` + one + `).isInteger()}"}}`, "log.message"},
		"semver()":                   {`{id: look, log: {message: "${semver(` + one + `).major()}"}}`, "log.message"},
		"cidr()":                     {`{id: look, log: {message: "${cidr(` + one + `).prefixLength()}"}}`, "log.message"},
		"find()":                     {`{id: look, log: {message: "${'x'.find('[' + ` + one + `)}"}}`, "log.message"},
		"format()":                   {`{id: look, log: {message: "${('%q' + ` + one + `).format([1])}"}}`, "log.message"},
		"unbase64()":                 {`{id: look, log: {message: "${unbase64(` + one + `)}"}}`, "log.message"},
		"bool()":                     {`{id: look, log: {message: "${bool(` + one + `)}"}}`, "log.message"},
		"a child's kind":             {`{id: look, apply: {copy: {apiVersion: v1, kind: "${` + one + `}", metadata: {name: copy}}}}`, "child copy"},
		"a child's apiVersion":       {`{id: look, apply: {copy: {apiVersion: "${` + one + `}", kind: ConfigMap, metadata: {name: copy}}}}`, "child copy"},
		"a child's labels":           {`{id: look, apply: {copy: ` + configMap(`metadata: {name: copy, labels: {x: "${`+one+`}"}}, data: {x: "${`+one+`}"}`) + `}}`, "refuses ConfigMap as invalid: data…"},
		"a step's child":             {`{id: look, steps: [{name: make, apply: {copy: ` + configMap(`metadata: {name: copy}, data: {x: "${`+one+`}"}`) + `}}]}`, "refuses ConfigMap as invalid: data…"},
		"a key that is asked for":    {`{id: look, log: {message: "${self.spec[` + one + `]}"}}`, "it looks for something that is not there"},
		"a number that is too large": {`{id: look, log: {message: "${[1][int(` + one + `.size()) + 100]}"}}`, "it looks for something that is not there"},
		"a key that is missing":      {`{id: look, log: {message: "${{'a': 'b'}[` + one + `]}"}}`, "it looks for something that is not there"},
		"a filter":                   {`{id: look, when: "ip(` + one + `).family() == 4", log: {message: hello}}`, "evaluating when"},
		"a step's filter":            {`{id: look, steps: [{when: "ip(` + one + `).family() == 4", log: {message: hello}}]}`, "evaluating when"},
		"two items of one key":       {`{id: look, forEach: "${string(base64.decode(related.creds.data.list)).split(',')}", key: "${item}", log: {message: hello}}`, "of forEach have the key"},
		"items without a key":        {`{id: look, forEach: "${string(base64.decode(related.creds.data.list)).split(',')}", log: {message: hello}}`, "say with key"},
		"a condition's status":       {`{id: look, set: {conditions: [{type: Ready, status: "${` + one + `}"}]}}`, "setting condition Ready: its status"},
		"a condition's reason":       {`{id: look, set: {conditions: [{type: Ready, status: "True", reason: "${` + one + `}"}]}}`, "setting condition Ready: its reason"},
		"a label":                    {`{id: look, set: {labels: {seen: "${` + one + `}"}}}`, "setting labels.seen"},
		"a value that is not a text": {`{id: look, event: {reason: Seen, message: "${[` + one + `]}"}}`, "want text, found"},
		"a child's name":             {`{id: look, apply: {copy: ` + configMap(`metadata: {name: "${`+one+`}"}`) + `}}`, "child copy"},
		"a child's namespace":        {`{id: look, apply: {copy: ` + configMap(`metadata: {name: copy, namespace: "${`+one+`}"}`) + `}}`, "child copy"},
		"a child's value":            {`{id: look, apply: {copy: ` + configMap(`metadata: {name: copy}, data: {x: "${`+one+`}"}`) + `}}`, "refuses ConfigMap as invalid: data…"},
		"a child's value behind words of its object": {`{id: look, apply: {copy: ` + configMap(`metadata: {name: copy}, data: {x: "${self.spec.words + `+one+`}"}`) + `}}`, "denied the request"},
		"items of a child": {`{id: look, apply: {copy: {forEach: "${string(base64.decode(related.creds.data.list)).split(',')}", key: "${item}",
			template: ` + configMap(`metadata: {name: "${item}"}`) + `}}}`, "of forEach have the key"},
		"what the object itself gets": {`{id: look, set: {spec: {url: "${` + one + `}"}}}`, "refuses Foo as invalid: spec…"},
		"what a webhook denies":       {`{id: look, set: {spec: {denied: "${` + one + `}"}}}`, "denied the request"},
		"a value that is missing":     {`{id: look, log: {message: "${related.creds.data.two}"}}`, "related.creds (Secret default/creds): data.two is not set"},
	}
	for name, tt := range handlers {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, reading(tt.handler), func(s *scene.Stage) {
				s.Create(scene.PlainSecret)
				refusesQuoting(s, "configmaps.v1", false, "data", "x")
				refusesQuoting(s, scene.Foos, false, "spec", "url")
				refusesQuoting(s, scene.Foos, true, "spec", "denied")
				var all scene.Texts
				all.Launch(s)
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {secret: creds, words: "denied the request; allow it to the operator "}}`)
				s.Advance(5 * time.Minute)
				all.WantNoSecret(s, tt.says, scene.Foos)
			})
		})
	}
}

// TestErrorsOfHandlersWithoutSecretsShowValues holds that a handler that reads no Secret shows its values, beside a handler that does,
// and that what a Secret is called is no value of it.
func TestErrorsOfHandlersWithoutSecretsShowValues(t *testing.T) {
	for name, tt := range map[string]struct{ handler, says string }{
		"an expression":           {`{id: look, log: {message: "${ip(self.spec.host).family()}"}}`, "far away"},
		"a label":                 {`{id: look, set: {labels: {seen: "${self.spec.host}"}}}`, `setting labels.seen: "far away"`},
		"what the server refuses": {`{id: look, apply: {copy: {apiVersion: v1, kind: ConfigMap, metadata: {name: copy}, data: {x: "${self.spec.shout}"}}}}`, `Invalid value: "hush`},
		"a Secret's name":         {`{id: look, log: {message: "${ip(self.spec.host + related.creds.metadata.name).family()}"}}`, "far awaycreds"},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, reading(`{id: other, log: {message: "${`+one+` != '' ? 'yes' : 'no'}"}}, `+tt.handler), func(s *scene.Stage) {
				s.Create(scene.PlainSecret)
				refusesQuoting(s, "configmaps.v1", false, "data", "x")
				var all scene.Texts
				all.Launch(s)
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {secret: creds, host: far away, shout: hush}}`)
				s.Advance(5 * time.Minute)
				if text := all.All(s, scene.Foos); !strings.Contains(text, tt.says) && !strings.Contains(text, strings.ReplaceAll(tt.says, `"`, `\"`)) {
					t.Errorf("nothing says %q:\n%s", tt.says, text)
				}
			})
		})
	}
}

// TestNoErrorShowsAHandledSecret holds the same of a Secret that is the object, of indexes over Secrets, and of what
// relations select by one.
func TestNoErrorShowsAHandledSecret(t *testing.T) {
	const self = `string(base64.decode(self.data.one))`
	for name, tt := range map[string]struct{ resource, says string }{
		"its own expressions": {`{resource: secrets.v1, handlers: [{id: look, log: {message: "${ip(` + self + `).family()}"}}]}`, "log.message"},
		"a label on itself":   {`{resource: secrets.v1, handlers: [{id: look, set: {labels: {seen: "${` + self + `}"}}}]}`, "setting labels.seen"},
		"a relation's selector": {`{resource: secrets.v1, related: [{name: maps, resource: configmaps.v1, selector: {matchLabels: {of: "${` + self + `}"}}}],
			handlers: [{id: look, log: {message: "${size(related.maps)}"}}]}`, "no value of a label"},
		"what the server says of it": {`{resource: secrets.v1, handlers: [{id: look, set: {annotations: {seen: "${` + self + `}"}}}]}`, "refuses Secret as invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, tt.resource, func(s *scene.Stage) {
				refusesQuoting(s, "secrets.v1", false, "metadata", "annotations", "seen")
				var all scene.Texts
				all.Launch(s)
				s.Create(scene.PlainSecret)
				s.Advance(5 * time.Minute)
				all.WantNoSecret(s, tt.says, "secrets.v1")
			})
		})
	}
	t.Run("an index", func(t *testing.T) {
		kit.Run(t, func(t *testing.T, c *kit.Cluster) {
			c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
			s := scene.NewStage(t, c)
			op, err := scene.ParseYAML(`{resource: foos.v1.example.com, handlers: [{id: look, log: {message: "${size(indexes.tokens)}"}}]}], indexes: [
				{name: tokens, resource: secrets.v1, key: "ip(` + self + `).family()", value: "1"}`)
			if err != nil {
				t.Fatal(err)
			}
			s.Operator = op
			s.Create(scene.PlainSecret)
			var all scene.Texts
			all.Launch(s)
			s.Create(scene.Web)
			s.Advance(5 * time.Minute)
			all.WantNoSecret(s, "evaluating key", scene.Foos)
		})
	})
}

// TestHandlersThatMayReadSecretsAreKnown holds what is known of handlers without running them.
func TestHandlersThatMayReadSecretsAreKnown(t *testing.T) {
	apply := func(text string) string {
		return `{id: look, apply: {copy: {apiVersion: v1, kind: ConfigMap, metadata: {name: copy}, data: {x: "${` + text + `}"}}}}`
	}
	for name, tt := range map[string]struct {
		resource string
		want     bool
	}{
		"its data":                      {reading(apply("related.creds.data.one")), true},
		"all of it":                     {reading(apply("string(hash(related.creds))")), true},
		"all that is related":           {reading(apply("string(hash(related))")), true},
		"what it is called":             {reading(apply("related.creds.metadata.name")), false},
		"an annotation by its name":     {reading(apply("related.creds.metadata.annotations.note")), false},
		"what kubectl has left":         {reading(apply("related.creds.metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']")), true},
		"its annotations":               {reading(apply("string(hash(related.creds.metadata.annotations))")), true},
		"nothing":                       {reading(apply("self.spec.size")), false},
		"code in Go":                    {reading(`{id: look, call: test.Nothing}`), true},
		"a filter alone":                {reading(`{id: look, when: related.creds.data.one != '', log: {message: hello}}`), true},
		"a child whose kind is unknown": {`{resource: foos.v1.example.com, owns: [configmaps.v1], handlers: [{id: make, apply: {some: {apiVersion: v1, kind: "${self.spec.kind}", metadata: {name: x}}}}, {id: look, log: {message: "${children.some.data.x}"}}]}`, true},
		"a child that is a Secret":      {`{resource: foos.v1.example.com, handlers: [{id: make, apply: {some: {apiVersion: v1, kind: Secret, metadata: {name: x}}}}, {id: look, log: {message: "${children.some.data.x}"}}]}`, true},
		"a Secret that is made":         {`{resource: foos.v1.example.com, handlers: [{id: look, apply: {some: {apiVersion: v1, kind: Secret, metadata: {name: x}}}}]}`, false},
		"a right that a role grants":    {`{resource: foos.v1.example.com, handlers: [{id: look, steps: [{name: role, apply: {reader: {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x}, rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}}}, {name: code, call: test.Nothing}]}]}`, false},
		"a Secret that is itself":       {`{resource: secrets.v1, handlers: [{id: look, log: {message: "${self.data.x}"}}]}`, true},
		"the name of itself":            {`{resource: secrets.v1, handlers: [{id: look, log: {message: "${self.metadata.name}"}}]}`, false},
		"how it was":                    {`{resource: secrets.v1, handlers: [{id: look, causes: [update], log: {message: "${string(size(diff))}"}}]}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			op, err := scene.ParseYAML(tt.resource)
			if err != nil {
				t.Fatal(err)
			}
			for r, h := range op.Handlers() {
				if h.ID == "look" && r.Secrets(h).Read != tt.want {
					t.Errorf("it reads Secrets: %t, want %t (of %v it reads %v)", !tt.want, tt.want, r.Secrets(h).From, h.Known.Reads.Values)
				}
			}
		})
	}
	r := dsl.New("op").Resource("secrets.v1", func(r *dsl.Resource) { r.OnCreate("made", scene.Succeeds) })
	if !r.Secrets(r.Handlers()[0]).Read {
		t.Error("Go code for Secrets reads none")
	}
}
