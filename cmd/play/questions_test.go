// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"strings"
	"testing"

	"github.com/handwerk-dev/handwerk/cmd/door"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/operate/status"
)

// TestAPlayAnswersQuestions holds that operator status and operator why work where a play says, also after the operator has
// started again.
func TestAPlayAnswersQuestions(t *testing.T) {
	s := newStage(t)
	s.begin()
	_, address, _ := strings.Cut(s.awaits("export HANDWERK_ADDRESS="), "=")
	ask := func(question string, q why.Question, into any) {
		t.Helper()
		process, err := door.Open(t.Context(), nil, "", door.Target{Address: address, Operator: "sites"})
		if err != nil {
			t.Fatal(err)
		}
		defer process.Close()
		if err := process.Ask(t.Context(), question, q.Values(), into); err != nil {
			t.Fatal(err)
		}
	}
	s.awaits(`^deployments/home +workloads +2 of 2`)
	var a why.Answer
	if ask(why.Asked, why.Question{Resource: "site", Namespace: "default", Name: "home"}, &a); a.Handler("web") == nil {
		t.Errorf("the answer has no handler web: %+v", a)
	}
	var first, second status.Status
	ask("status", why.Question{}, &first)
	s.write("operator.yaml", strings.Replace(sites, "image: nginx", "image: httpd", 1))
	s.awaits(`^deployments/home +web +spec.template.spec.containers\[0\].image nginx → httpd`)
	ask("status", why.Question{}, &second)
	if first.Configuration.Digest == second.Configuration.Digest {
		t.Errorf("the operator that has been replaced answers: %+v", second.Configuration)
	}
	s.end()
}
