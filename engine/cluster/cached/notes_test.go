// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestUnreadAnnotationsAreNotHeld holds that an object that comes as bytes and one that comes as a tree are cut alike.
func TestUnreadAnnotationsAreNotHeld(t *testing.T) {
	form := FormOf(dsl.CacheCompact, dsl.Held{Fields: []dsl.Path{{"spec", "n"}}, Annotations: []string{"op.example.com/", "wanted", "a/b"}})
	tests := map[string]struct{ annotations, want string }{
		"keys that are named":                 {`{"wanted":"1","a/b":"2","a/bc":"3","b":"4"}`, `{"wanted":"1","a/b":"2"}`},
		"keys that begin so":                  {`{"op.example.com/state":"1","op.example.com":"2","xop.example.com/state":"3"}`, `{"op.example.com/state":"1"}`},
		"keys that are escaped":               {`{"w\u0061nted":"1","\u0062":"2"}`, `{"wanted":"1"}`},
		"none that is held":                   {`{"b":"4"}`, `{}`},
		"none":                                {`{}`, `{}`},
		"null":                                {`null`, `null`},
		"all of many, for the room they take": {`{"b":"` + strings.Repeat("x", fewNotes) + `"}`, `{"b":"` + strings.Repeat("x", fewNotes) + `"}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Foo","metadata":{"name":"a","uid":"u","annotations":%s,"labels":{"b":"c"}},"spec":{"n":1,"m":2}}`, test.annotations)
			want := parse(t, `{"apiVersion":"v1","kind":"Foo","metadata":{"name":"a","uid":"u","labels":{"b":"c"}},"spec":{"n":1}}`)
			if test.want != "" {
				want = parse(t, strings.Replace(`{"apiVersion":"v1","kind":"Foo","metadata":{"name":"a","uid":"u","annotations":X,"labels":{"b":"c"}},"spec":{"n":1}}`, "X", test.want, 1))
			}
			live := parse(t, text)
			before := live.DeepCopy()
			if diff := cmp.Diff(want.Object, hold(t, form, live).Tree().Object); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if len(test.annotations) < fewNotes { // of many it shows less than a cache: the others are not read
				if diff := cmp.Diff(want.Object, form.Shows()(live).Object); diff != "" {
					t.Errorf("shown (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(before.Object, live.Object); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
		})
	}
}
