// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

func TestAccess(t *testing.T) {
	// What may be done: "verb resource.version.group/subresource namespace name".
	grants := map[string]bool{
		"list foos.v1.example.com/  ":             true,
		"watch foos.v1.example.com/  ":            true,
		"patch foos.v1.example.com/ team-a ":      true,
		"patch foos.v1.example.com/status other ": true,
		"get foos.v1.example.com/ other one":      true,
	}
	tests := map[string]struct {
		namespace, name string
		verbs           []string
		want            []string
	}{
		"everything is granted":             {verbs: []string{"list", "watch"}},
		"what is missing comes in order":    {verbs: []string{"patch", "list", "delete"}, want: []string{"patch", "delete"}},
		"a namespace of its own":            {namespace: "team-a", verbs: []string{"patch", "patch status"}, want: []string{"patch status"}},
		"the subresource without the whole": {namespace: "other", verbs: []string{"patch", "patch status"}, want: []string{"patch"}},
		"one object":                        {namespace: "other", name: "one", verbs: []string{"get", "list"}, want: []string{"list"}},
		"nothing asked, nothing missing":    {},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
				review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
				a := review.Spec.ResourceAttributes
				what := a.Verb + " " + a.Resource + "." + a.Version + "." + a.Group + "/" + a.Subresource + " " + a.Namespace + " " + a.Name
				review.Status.Allowed = grants[what]
				return true, review, nil
			})
			got, err := New(nil, nil, client.AuthorizationV1()).Access(t.Context(), foosV1.GVR, cache.ObjectName{Namespace: test.namespace, Name: test.name}, test.verbs...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("missing verbs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAccessCannotBeAsked(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("it is down")
	})
	_, err := New(nil, nil, client.AuthorizationV1()).Access(t.Context(), foosV1.GVR, cache.ObjectName{}, "list")
	if want := "reviewing access to foos.example.com: it is down"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %v, want %q", err, want)
	}
}
