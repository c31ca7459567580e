// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/workloads"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const front = `
apiVersion: v1
kind: Service
metadata: {name: front}
spec: {selector: {app: a}, ports: [{port: 80, targetPort: 8080, protocol: TCP}]}`

// known returns which Pods an EndpointSlice and the Endpoints of the Service have, and how the Pods are.
func (s stage) known() (out []string) {
	s.t.Helper()
	synctest.Wait()
	for _, slice := range s.list("EndpointSlice") {
		ends, _, _ := unstructured.NestedSlice(slice.Object, "endpoints")
		for _, end := range ends {
			fields := end.(map[string]any)
			if pod, found, _ := unstructured.NestedString(fields, "targetRef", "name"); found {
				out = append(out, fmt.Sprint("slice ", pod, " ready=", fields["conditions"].(map[string]any)["ready"]))
			}
		}
	}
	for _, each := range s.list("Endpoints") {
		subsets, _, _ := unstructured.NestedSlice(each.Object, "subsets")
		for _, subset := range subsets {
			for _, list := range []string{"addresses", "notReadyAddresses"} {
				addresses, _ := subset.(map[string]any)[list].([]any)
				for _, address := range addresses {
					if pod, found, _ := unstructured.NestedString(address.(map[string]any), "targetRef", "name"); found {
						out = append(out, list+" "+pod)
					}
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestAServiceKnowsItsPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := server.New(server.Settings{AllKinds: true, Controllers: true})
		plan := workloads.NewPlan(workloads.Rule{Kind: "Pod", Name: "b", Fail: "Unready"}, workloads.Rule{Kind: "Pod", Name: "d", Hold: true})
		s := newStageWith(t, memory, workloads.Settings{Plan: plan, AllKinds: true})
		check := func(when string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, s.known()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		s.create(front)
		s.advance(time.Second)
		for kind, want := range map[string]int{"EndpointSlice": 2, "Endpoints": 2} { // the API server has one of each
			if got := len(s.list(kind)); got != want {
				t.Errorf("there are %d of kind %s, want %d", got, kind, want)
			}
		}
		s.create(pod("a"))
		s.create(strings.Replace(pod("b"), "app: b", "app: a", 1))
		s.create(pod("c"))
		s.create(strings.Replace(pod("d"), "app: d", "app: a", 1)) // it has no address
		s.advance(time.Second)
		check("with Pods", "addresses a", "notReadyAddresses b", "slice a ready=true", "slice b ready=false")
		writes := s.writes.Load()
		s.patch("Service", "front", `{"metadata":{"annotations":{"a":"b"}}}`)
		s.advance(time.Second)
		if got := s.writes.Load() - writes; got != 0 {
			t.Errorf("%d writes when nothing has changed for the Service", got)
		}
		s.patch("Pod", "a", `{"metadata":{"labels":{"app":"c"}}}`)
		s.advance(time.Second)
		check("with another label", "notReadyAddresses b", "slice b ready=false")
		s.delete("Service", "front")
		s.advance(time.Minute)
		check("without the Service")
	})
}
