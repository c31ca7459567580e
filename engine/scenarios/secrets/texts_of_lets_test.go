// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestNoTextShowsASecretThatIsReadThroughAName holds that a let, a child as it was, and what a condition or an entry of set is asked, hide
// values of Secrets in all that people read, as an expression does that reads them itself. A person who asks why sees none either.
func TestNoTextShowsASecretThatIsReadThroughAName(t *testing.T) {
	const lets = `let: {plain: "` + one + `", again: plain + ''}, `
	secret := func(fields string) string {
		return `{apiVersion: v1, kind: Secret, metadata: {name: copy}, stringData: {a: "${` + one + `}"}, ` + fields + `}`
	}
	for name, tt := range map[string]struct{ handler, says string }{
		"a let":                              {`{id: look, ` + lets + `log: {message: "${ip(plain).family()}"}}`, "log.message"},
		"a let that fails":                   {`{id: look, let: {number: int(` + one + `)}, log: {message: "${number}"}}`, "let number"},
		"a let of a let":                     {`{id: look, ` + lets + `log: {message: "${int(again)}"}}`, "log.message"},
		"a let in a when":                    {`{id: look, ` + lets + `when: again == 'x', log: {message: hello}}`, ""},
		"a let that is true or false":        {`{id: look, let: {is: "` + one + `.startsWith('hush')"}, when: "!is", log: {message: hello}}`, ""},
		"a let in a when that fails":         {`{id: look, ` + lets + `when: int(again) == 1, log: {message: hello}}`, "evaluating when"},
		"a let in a label":                   {`{id: look, ` + lets + `set: {labels: {seen: "${again}"}}}`, "setting labels.seen"},
		"a let in runAgainAfter":             {`{id: look, ` + lets + `runAgainAfter: again, log: {message: hello}}`, "runAgainAfter"},
		"an entry's when":                    {`{id: look, ` + lets + `set: {status: {a: b}, when: {status.a: again == 'x'}}}`, ""},
		"an entry's when that fails":         {`{id: look, ` + lets + `set: {status: {a: b}, when: {status.a: int(again) == 1}}}`, "evaluating set.when.status.a"},
		"a condition's when":                 {`{id: look, ` + lets + `set: {conditions: [{type: Good, status: true, when: again == 'x'}]}}`, ""},
		"a condition's when that fails":      {`{id: look, ` + lets + `set: {conditions: [{type: Good, status: true, when: int(again) == 1}]}}`, "setting condition Good"},
		"a condition that lacks a value":     {`{id: look, ` + lets + `set: {conditions: [{type: Good, status: "${self.spec[again] == 'x'}"}]}}`, "Cannot be worked out"},
		"a condition without text":           {`{id: look, ` + lets + `set: {conditions: [{type: Good, status: "${again}"}]}}`, "its status is"},
		"the message of another":             {`{id: app, ` + lets + `log: {message: "${int(again)}"}}, {id: look, set: {status: {why: "${handlers.app.message}"}}}`, "no more is shown"},
		"a let of the outcome":               {`{id: app, ` + lets + `log: {message: "${int(again)}"}}, {id: look, let: {why: handlers.app.message}, log: {message: "because ${why}"}}`, "because writing log line: evaluating log.message: int() fails (no more is shown"},
		"a child as it was":                  {`{id: look, apply: {copy: ` + secret(`data: {b: "${current.copy.?data.?a.optMap(v, string(int(unbase64(v)))).orValue('YQ==')}"}`) + `}}`, "child copy"},
		"a child as it was, in includeWhen":  {`{id: look, apply: {copy: ` + secret(`data: {}`) + `, more: {includeWhen: "int(unbase64(current.copy.?data.?a.orValue('MQ=='))) == 1", template: {apiVersion: v1, kind: ConfigMap, metadata: {name: more}}}}}`, "includeWhen"},
		"a child as it was, in a name":       {`{id: look, apply: {copy: ` + secret(`data: {}`) + `, more: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${unbase64(current.copy.?data.?a.orValue('MQ=='))}"}}}}`, "child more"},
		"a child as it was, in a key":        {`{id: look, apply: {copy: ` + secret(`data: {}`) + `, more: {forEach: [1, 2], key: "${unbase64(current.copy.?data.?a.orValue('MQ=='))}", template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "x${string(item)}"}}}}}`, "items 0 and 1 of forEach have the key"},
		"a child as it was, that is refused": {`{id: look, apply: {copy: ` + secret(`data: {}`) + `, more: {apiVersion: v1, kind: ConfigMap, metadata: {name: more}, data: {x: "${unbase64(current.copy.?data.?a.orValue('MQ=='))}"}}}}`, "refuses ConfigMap as invalid: data…"},
		"what is patched":                    {`{id: look, ` + lets + `patch: {apiVersion: v1, kind: ConfigMap, metadata: {name: target}, data: {x: "${again}"}}}`, "refuses ConfigMap as invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, reading(tt.handler), func(s *scene.Stage) {
				s.Create(scene.PlainSecret)
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: target}}`)
				refusesQuoting(s, "configmaps.v1", false, "data", "x")
				var all scene.Texts
				all.Launch(s)
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {secret: creds}}`)
				s.Advance(5 * time.Minute)
				all.WantNoSecret(s, tt.says, scene.Foos)
				answer, err := s.Process.Engine().Why(context.Background(), why.Question{Resource: scene.Foos, Namespace: "default", Name: "web", History: true})
				if err != nil {
					t.Fatal(err)
				}
				text, err := json.Marshal(answer)
				if err != nil || strings.Contains(string(text), "hush") || strings.Contains(string(text), "aHVzaC") {
					t.Errorf("why says %s (%v)", text, err)
				}
			})
		})
	}
}
