// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/rbac"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// account is the server's side: what an account may not do.
type account struct {
	mu      sync.Mutex
	refused map[string]bool // by verb, resource and namespace
	down    bool
	asked   []string
	given   int
}

// set changes what the account may not do, or whether the server answers.
func (a *account) set(down bool, refused ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down, a.refused = down, map[string]bool{}
	for _, what := range refused {
		a.refused[what] = true
	}
}

// take returns what was asked for since it was called last.
func (a *account) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.asked
	a.asked = nil
	slices.Sort(asked)
	return asked
}

func (a *account) review(action clienttesting.Action) (bool, runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
	about := review.Spec.ResourceAttributes
	what := about.Verb + " " + about.Resource
	if about.Namespace != "" {
		what += " in " + about.Namespace
	}
	a.asked = append(a.asked, what)
	if a.down {
		return true, nil, errors.New("it is down")
	}
	review.Status.Allowed = !a.refused[what]
	return true, review, nil
}

// silence answers nothing.
type silence struct{}

// RoundTrip fails.
func (silence) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("it serves no discovery")
}

// others ask for all rights but those on Pods.
type others struct{}

func (others) Asks(r rbac.Rule) bool       { return r.Resource != "pods" }
func (others) Missing() []ops.MissingRight { return nil }

// watches runs a Monitor of an operator whose handler makes Pods; it needs no other rights that anybody asks for.
// owner is an operator whose rights an account has.
type owner struct {
	*dsl.Operator
	account    *account
	namespaces func() []string
}

func (o owner) Namespaces() ([]string, bool) {
	if o.namespaces == nil {
		return nil, false
	}
	return o.namespaces(), true
}

func (o owner) OnGranted() {
	o.account.mu.Lock()
	defer o.account.mu.Unlock()
	o.account.given++
}

// watches returns a Monitor that runs.
func watches(t *testing.T, a *account, namespaces func() []string) *Monitor {
	t.Helper()
	m := monitorOf(t, a, namespaces)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return m
}

func monitorOf(t *testing.T, a *account, namespaces func() []string) *Monitor {
	t.Helper()
	client := fake.NewClientset()
	client.PrependReactor("create", "selfsubjectaccessreviews", a.review)
	client.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: "ann"}}}, nil
	})
	discover, err := clientdiscovery.NewDiscoveryClientForConfig(&rest.Config{Host: "http://server", Transport: silence{}})
	if err != nil {
		t.Fatal(err)
	}
	op := dsl.New("foo")
	op.Resource("nodes.v1", func(node *dsl.Resource) {
		node.OnReconcile("pod", func(context.Context, *dsl.Request) error { return nil }, dsl.Needs("create, delete", "pods"))
	})
	return New(Settings{
		Operator: op, Owner: owner{op, a, namespaces}, Catalog: discovery.New(discover, nil, client.AuthorizationV1()), Reviews: client.AuthenticationV1(),
		Askers: slices.Values([]Asker{others{}}), Log: logr.Discard(),
	})
}

// forbidden is the answer to a request for which the right to make Pods is missing.
func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New(`User "ann" cannot create resource "pods" in API group "" in the namespace "a"`))
}

// TestALookSeesAllThatCameBeforeIt holds that one look follows wakes before the first one, and one after those of a moment.
func TestALookSeesAllThatCameBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		m := monitorOf(t, &account{}, nil)
		m.settings.Owner = looked{m.settings.Owner, &looks}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m.Wake()
		go m.Run(ctx)
		for _, want := range []int{1, 2} {
			time.Sleep(time.Minute)
			synctest.Wait()
			if looks != want {
				t.Errorf("%d looks, want %d", looks, want)
			}
			m.Wake()
			time.Sleep(settling / 2)
			m.Wake()
		}
	})
}

// looked is an owner that counts how often it is looked what it works on.
type looked struct {
	Owner
	looks *int
}

func (l looked) Resources() []*dsl.Resource {
	*l.looks++
	return l.Owner.Resources()
}

func TestTheMonitorKnowsWhatIsMissing(t *testing.T) {
	const refused = "may not create pods (handler nodes/pod); account ann"
	after := func(d time.Duration) {
		time.Sleep(d)
		synctest.Wait()
	}
	tests := map[string]struct {
		namespaces []string // the scope, when it is known only while the operator runs
		play       func(t *testing.T, a *account, m *Monitor)
		want       string // of the check in the end
		asked      []string
	}{
		"nothing": {
			play: func(*testing.T, *account, *Monitor) {}, asked: []string{"create pods", "delete pods"},
		},
		"what a request was refused for": {
			play: func(t *testing.T, a *account, m *Monitor) {
				a.set(false, "create pods")
				a.take()
				m.OnError(forbidden())
				after(5 * time.Second)
				if asked := a.take(); len(asked) > 0 { // there may be as many refusals as there are objects
					t.Errorf("a moment after it was asked for, it is asked for again: %v", asked)
				}
				after(7 * time.Second)
				a.take()
			}, want: refused,
		},
		"what was taken away, when a request is refused": {
			play: func(_ *testing.T, a *account, m *Monitor) {
				after(time.Hour)
				a.set(false, "create pods")
				m.Wake()
				after(time.Minute)
				if m.Logged(forbidden()) {
					t.Error("an unknown gap counts as logged")
				}
				a.take()
				m.OnError(forbidden())
				after(3500 * time.Millisecond)
				if !m.Logged(forbidden()) {
					t.Error("a missing right does not count as logged")
				}
			}, want: refused, asked: []string{"create pods", "create pods"},
		},
		"what is missing, at a question each five minutes": {
			play: func(t *testing.T, a *account, m *Monitor) {
				a.set(false, "create pods")
				m.OnError(forbidden())
				after(time.Hour)
				a.take()
				after(time.Hour)
				if n := len(a.take()); n < 12 || n > 15 {
					t.Errorf("%d questions in an hour", n)
				}
			}, want: refused,
		},
		"nothing of a right that is there in each namespace of the scope": {
			namespaces: []string{"a", "b"},
			play: func(_ *testing.T, a *account, m *Monitor) {
				a.set(false, "create pods")
				m.OnError(forbidden())
				after(time.Minute)
				a.take()
				after(time.Hour)
			},
		},
		"nothing for another fault": {
			play: func(_ *testing.T, a *account, m *Monitor) {
				after(time.Hour)
				a.take()
				m.OnError(errors.New("it is down"))
				after(time.Minute)
			},
		},
		"what is given, at once when somebody says so": {
			play: func(t *testing.T, a *account, m *Monitor) {
				a.set(false, "create pods")
				m.OnError(forbidden())
				after(time.Hour)
				a.set(false)
				a.take()
				m.Retry()
				after(3 * time.Second)
				if a.given != 1 {
					t.Errorf("the refused handlers were notified %d times", a.given)
				}
			}, asked: []string{"create pods"},
		},
		"nothing else while the server is away": {
			play: func(_ *testing.T, a *account, m *Monitor) {
				a.set(false, "create pods")
				m.OnError(forbidden())
				after(time.Hour)
				a.set(true)
				after(time.Hour)
				a.set(false, "create pods")
				a.take()
			}, want: refused,
		},
		"in which namespaces of the scope": {
			namespaces: []string{"a", "b"},
			play: func(_ *testing.T, a *account, m *Monitor) {
				a.set(false, "create pods", "create pods in b")
				m.OnError(forbidden())
				after(12 * time.Second)
				a.take()
			}, want: "may not create pods in namespace b (handler nodes/pod); account ann",
		},
		"in ten namespaces of many": {
			namespaces: []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"},
			play: func(_ *testing.T, a *account, m *Monitor) {
				a.set(false, "create pods", "create pods in b", "create pods in k")
				m.OnError(forbidden())
				after(12 * time.Second)
				a.take()
			}, want: "may not create pods in namespace b (10 of 11 were asked for) (handler nodes/pod); account ann",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &account{}
				var namespaces func() []string
				if test.namespaces != nil {
					namespaces = func() []string { return test.namespaces }
				}
				m := watches(t, a, namespaces)
				synctest.Wait()
				test.play(t, a, m)
				asked := a.take()
				var want []ops.Check
				var missing []ops.MissingRight
				if test.want != "" {
					want = []ops.Check{{Name: "rights/pods", State: ops.Warn, Message: test.want}}
					missing = []ops.MissingRight{{Resource: "pods", Verb: "create", Namespaces: 1}}
				}
				if diff := cmp.Diff(want, m.Checks()); diff != "" {
					t.Errorf("checks (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(missing, m.Missing()); diff != "" {
					t.Errorf("missing (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.asked, asked); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
			})
		})
	}
}
