// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// warner adds Warning headers to answers, as the API server does.
type warner struct {
	next  http.RoundTripper
	warns func(r *http.Request) []string
}

func (w warner) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(r)
	if err == nil {
		for _, text := range w.warns(r) {
			response.Header.Add("Warning", fmt.Sprintf("299 - %q", text))
		}
	}
	return response, err
}

// launchWithWarnings starts the operator against a server that warns.
func launchWithWarnings(s *scene.Stage, warns func(r *http.Request) []string) (log func() []string) {
	return scene.LaunchWithLog(s, "warns", func(e *engine.Settings) {
		e.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return warner{next, warns} })
	})
}

// TestAWarningOfTheAPIServerIsLoggedOnceForAKind holds that many objects of a kind with the same warning are one line, which
// names the first of them.
func TestAWarningOfTheAPIServerIsLoggedOnceForAKind(t *testing.T) {
	const old = "metadata.annotations[example.com/old]: deprecated since v1.30"
	keeps := func(foo *dsl.Resource, _ *kit.Journal) {
		foo.Owns(scene.Deployments)
		foo.OnReconcile("child", scene.KeepsDeployment)
		foo.OnReconcile("status", scene.ReportsSeen)
	}
	three := func(s *scene.Stage) {
		for _, name := range []string{"a", "b", "c"} {
			s.Create(strings.Replace(scene.Web, "name: web", "name: "+name, 1))
			s.Settle()
		}
		s.Update(scene.Foos, "default", "a", func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, int64(7), "spec", "size")
		})
		s.Settle()
	}
	line := func(text, about, verb string) string {
		return `"msg"="the API server warns" "handwerk.warning"=true "warning"="` + text + `" "about"="` + about + `" "verb"="` + verb + `"`
	}
	tests := map[string]struct {
		warns func(r *http.Request) []string
		want  []string
	}{
		"one text of children": {func(r *http.Request) []string {
			if strings.Contains(r.URL.Path, "/deployments/") && r.Method == http.MethodPatch {
				return []string{old, old}
			}
			return nil
		}, []string{line(`metadata.annotations\[example.com/old\]: deprecated since v1.30`, "deployments.v1.apps default/a", "PATCH")}},
		"one text of two kinds": {func(r *http.Request) []string {
			if r.Method == http.MethodPatch {
				return []string{"it is old"}
			}
			return nil
		}, []string{line("it is old", "deployments.v1.apps default/a", "PATCH"), line("it is old", "foos.v1.example.com default/a", "PATCH")}},
		"a text that names the object": {func(r *http.Request) []string {
			if strings.Contains(r.URL.Path, "/deployments/") && r.Method == http.MethodPatch {
				return []string{"deployment " + path.Base(r.URL.Path) + " has no limits"}
			}
			return nil
		}, []string{line("deployment a has no limits", "deployments.v1.apps default/a", "PATCH")}},
		"two texts": {func(r *http.Request) []string {
			if strings.Contains(r.URL.Path, "/deployments/") && r.Method == http.MethodPatch {
				return []string{"it is old", "it is slow"}
			}
			return nil
		}, []string{line("it is old", "deployments.v1.apps default/a", "PATCH"), line("it is slow", "deployments.v1.apps default/a", "PATCH")}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: keeps, Play: func(s *scene.Stage) {
				log := launchWithWarnings(s, tt.warns)
				log()
				three(s)
				s.WantLines(log, tt.want...)
			}})
		})
	}
}
