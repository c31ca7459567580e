// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestWhatAnActionGivesIsBounded holds that no expression makes an action write more than can be stored
// or read: fields fail their handler, texts for people are cut.
func TestWhatAnActionGivesIsBounded(t *testing.T) {
	const tooLarge = "it gives more than 1.5 MiB"
	tests := map[string]struct {
		handler string
		// err is what the error says, "" when there is none; most is how many bytes come out at most.
		err  string
		most int
	}{
		"a field":                        {`set: {status: {a: "${self.spec.big}${self.spec.big}"}}`, tooLarge, 100},
		"fields together":                {`set: {status: {a: "${self.spec.big}", b: "${self.spec.big}", c: "${self.spec.big}"}}`, tooLarge, 1<<20 + 100},
		"a field that repeats an object": {`set: {spec: {a: "${lists.range(1000).map(i, self)}"}}`, tooLarge, 100},
		"a label":                        {`set: {labels: {a: "${self.spec.big}"}}`, "is no value of a label", 100},
		"an annotation":                  {`set: {annotations: {a: "${self.spec.big}"}}`, "setting annotations.a: want at most 256 KiB, found 1024", 100},
		"a condition's status":           {`set: {conditions: [{type: Ready, status: "${self.spec.big}"}]}`, "want true, false, True, False or Unknown", 100},
		"a condition's reason":           {`set: {conditions: [{type: Ready, status: "True", reason: "${self.spec.big}"}]}`, "want one CamelCase word", 100},
		"a condition's message":          {`set: {conditions: [{type: Ready, status: "True", message: "${self.spec.big}"}]}`, "", 32<<10 + 500},
		"an Event":                       {`event: {reason: "${self.spec.big}", message: "${self.spec.big}${self.spec.big}"}`, tooLarge, 100},
		"an Event's reason":              {`event: {reason: "${self.spec.big}", message: a}`, "", 200},
		"a log line":                     {`log: {message: "${self.spec.big}"}`, "", 16<<10 + 100},
		"a log line's values":            {`log: {message: a, values: {a: "${self.spec.big}", b: "${self.spec.big}"}}`, tooLarge, 100},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := prepared(t, "causes: [create]\n"+test.handler, foo)
			a.request.Object.Object["spec"] = map[string]any{"big": strings.Repeat("x", 1<<20)}
			err := a.run(t)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if (test.err == "") != (err == nil) || !strings.Contains(said, test.err) || len(said) > 600 {
				t.Errorf("error %.300q, want %q", said, test.err)
			}
			if err != nil && !dsl.IsPermanent(err) {
				t.Errorf("%.100q is tried again", said)
			}
			patch, err := json.Marshal(a.request.Patch)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(patch) + len(strings.Join(a.events, "")) + len(strings.Join(a.lines, "")); n > test.most+500 {
				t.Errorf("%d bytes come out, want at most %d", n, test.most)
			}
		})
	}
}
