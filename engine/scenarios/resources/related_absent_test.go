// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAnErrorNamesTheRelatedObjectThatIsAbsent holds that whoever reads of an expression that looks into a related object
// learns which object has to be made. A name that may be a Secret's value is not shown.
func TestAnErrorNamesTheRelatedObjectThatIsAbsent(t *testing.T) {
	foo := func(relation, handler string) string {
		return `{resource: foos.v1.example.com, owns: [configmaps.v1], related: [{name: conf, ` + relation + `}], handlers: [{id: look, ` + handler + `}]}`
	}
	const byName = `resource: configmaps.v1, object: "${self.spec.conf}"`
	tests := map[string]struct{ resource, want string }{
		"in a handler":          {foo(byName, `log: {message: "${related.conf.data.size}"}`), "log.message: related.conf (ConfigMap default/settings) is not there"},
		"in a filter":           {foo(byName, `when: related.conf.data.size == '1', log: {message: hello}`), "evaluating when: related.conf (ConfigMap default/settings) is not there"},
		"in a condition":        {foo(byName, `set: {conditions: [{type: Ready, status: "${ready(related.conf)}"}]}`), "message:related.conf (ConfigMap default/settings) is not there observedGeneration:1 reason:NotFound"},
		"in another namespace":  {foo(byName+", namespace: shared", `log: {message: "${related.conf.data.size}"}`), "related.conf (ConfigMap shared/settings) is not there"},
		"in no namespace":       {foo("resource: namespaces.v1, object: team-a", `log: {message: "${related.conf.metadata.labels.size}"}`), "related.conf (Namespace team-a) is not there"},
		"a Secret":              {foo("resource: secrets.v1, object: creds", `log: {message: "${related.conf.data.size}"}`), "related.conf (Secret default/creds) is not there"},
		"in a child":            {foo(byName, `apply: {web: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {size: "${related.conf.data.size}"}}}`), "waits for ConfigMap default/settings to exist (needed by child web)"},
		"whose name is not set": {foo(`resource: configmaps.v1, object: "${self.spec.?other}"`, `log: {message: "${related.conf.data.size}"}`), "log.message: related.conf is not there"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, tt.resource, func(s *scene.Stage) {
				var all scene.Texts
				all.Launch(s)
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {conf: settings}}`)
				s.Advance(5 * time.Minute)
				if text := all.All(s, scene.Foos); !strings.Contains(text, tt.want) {
					t.Errorf("nothing says %q:\n%s", tt.want, text)
				}
			})
		})
	}
	t.Run("whose name may be a value of a Secret", func(t *testing.T) {
		scene.PlayYAML(t, `{resource: secrets.v1, related: [{name: conf, resource: configmaps.v1, object: "${string(base64.decode(self.data.one)).split('/')[0].replace(' ', '-')}"}],
			handlers: [{id: look, log: {message: "${related.conf.data.size}"}}]}`, func(s *scene.Stage) {
			var all scene.Texts
			all.Launch(s)
			s.Create(strings.Replace(scene.PlainSecret, "aHVzaCBodXNoOiV6eig=", "aHVzaA==", 1))
			s.Advance(5 * time.Minute)
			all.WantNoSecret(s, "related.conf is not there", "secrets.v1")
		})
	})
}
