// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// adoptable is a child that may be there already.
const adoptable = `
web:
  adopt: ifUnowned
  drift: DRIFT
  template:
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: w-web}
    spec:
      selector: {matchLabels: {app: w}}
      template:
        metadata: {labels: {app: w}}
        spec: {containers: [{name: web, image: i}]}
`

// theirs is what somebody has made before.
const theirs = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"w-web"},"spec":{"selector":{"matchLabels":{"app":"w"}},` +
	`"template":{"metadata":{"labels":{"app":"w"}},"spec":{"hostNetwork":true,"containers":[{"name":"before","image":"b"},{"name":"web","image":"j"}]}}}}`

func (s *applyStage) again(t *testing.T, children string) {
	t.Helper()
	s.running.Stop(t)
	mark := plane.Mark(t)
	s.run(t, beside+children)
	s.quiesce(t, "w")
	if writes := plane.Writes(t, s.user.Name, mark).Of("deployments", ""); len(writes) > 0 {
		t.Errorf("after a restart the child was written to:\n%s", writes)
	}
}

// TestApplyDistinguishesWhatAnAdoptedChildHad: what people's hands have set before a child is adopted stays, unless drift is
// strict, and is distinguished from what they set later.
func TestApplyDistinguishesWhatAnAdoptedChildHad(t *testing.T) {
	t.Parallel()
	byCreate := func(t *testing.T, o *cluster.Objects) {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(theirs)); err != nil {
			t.Fatal(err)
		}
		o.By("kubectl-create").Create(t, u)
	}
	byApply := func(t *testing.T, o *cluster.Objects) { o.By("kubectl").Send(t, "w-web", apply, theirs) }
	byEdit := func(t *testing.T, o *cluster.Objects) {
		o.Send(t, "w-web", apply, strings.Replace(theirs, `{"name":"before","image":"b"},`, "", 1))
		o.By("kubectl-edit").Send(t, "w-web", strategic, pod(`{"containers":[{"name":"before","image":"b"}]}`))
	}
	tests := map[string]struct {
		drift string
		make  func(*testing.T, *cluster.Objects)
		// adopted, and later are the containers when it is adopted and after another one was added. Hosts is what of
		// hostNetwork is left.
		adopted, later string
		hosts          any
	}{
		"what create made stays":                      {"fields", byCreate, "before web", "before web", true},
		"what apply --server-side made stays":         {"fields", byApply, "before web", "before web", true},
		"what edit added stays":                       {"fields", byEdit, "before web", "before web", true},
		"it goes where drift is strict":               {"strict", byCreate, "web", "web", nil},
		"what apply made goes where drift is strict":  {"strict", byApply, "web", "web", nil},
		"all stays where drift is ignored":            {"ignore", byCreate, "before web", "before more web", true},
		"what others made goes where drift is strict": {"strict", byEdit, "web", "web", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApplyStage(t, nil, made("", "configmaps"), made("apps", "deployments"))
			objects, children := plane.Objects(deployments, s.ns), strings.Replace(adoptable, "DRIFT", test.drift, 1)
			test.make(t, objects)
			s.run(t, beside+children)
			s.works.Create(t, work("w", "a"))
			s.applied(t, "w")
			s.quiesce(t, "w")
			see := func(when, want string) {
				t.Helper()
				if got := names("containers")(objects.Get(t, "w-web")); got != want {
					t.Errorf("%s the containers are %v, want %s", when, got, want)
				}
			}
			see("adopted,", test.adopted)
			s.again(t, children)
			act{"kubectl-edit", strategic, pod(`{"containers":[{"name":"more","image":"m"}]}`), ""}.on(t, objects, "w-web")
			objects.Await(t, "w-web", test.later, func(o *unstructured.Unstructured) bool { return names("containers")(o) == test.later })
			s.quiesce(t, "w")
			if test.drift == "fields" { // who applies what he had before takes nothing away by it
				act{"kubectl", apply, theirs, ""}.on(t, objects, "w-web")
				objects.Await(t, "w-web", "the image of the template", func(o *unstructured.Unstructured) bool { return container("image")(o) == "i" })
				s.quiesce(t, "w")
			}
			see("in the end", test.later)
			if got := at("spec", "template", "spec", "hostNetwork")(objects.Get(t, "w-web")); got != test.hosts {
				t.Errorf("hostNetwork is %v, want %v", got, test.hosts)
			}
			s.again(t, children)
		})
	}
}
