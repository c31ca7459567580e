// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/complete"
)

var (
	validating = schema.GroupVersionResource{Group: group, Version: "v1", Resource: "validatingwebhookconfigurations"}
	policies   = schema.GroupVersionResource{Group: group, Version: "v1", Resource: "validatingadmissionpolicies"}
	crds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// scene is an API server in memory and a keeper.
type scene struct {
	*Keeper
	t      *testing.T
	others dynamic.Interface
	stop   func()

	mu     sync.Mutex
	fault  func(server.Request) error
	mayNot bool // list objects of kinds that are not wanted
	lines  []string
	writes []string
}

// begin returns a scene on a new server whose keeper runs.
func begin(t *testing.T) *scene {
	t.Helper()
	return beginOn(t, server.New(complete.Settings()).Admin())
}

func beginOn(t *testing.T, admin *server.Client) *scene {
	t.Helper()
	s := &scene{t: t, others: client(t, admin)}
	var err error
	s.Keeper, err = New(Settings{
		Client: client(t, admin.Through(s.request, nil)), Manager: "op-webhooks", Labels: map[string]string{"app.kubernetes.io/managed-by": "op"},
		Rules: func(context.Context) (out []authorizationv1.ResourceRule, err error) {
			s.locked(func() {
				if !s.mayNot {
					out = []authorizationv1.ResourceRule{{Verbs: []string{"get", "list"}, APIGroups: []string{group}, Resources: []string{"*"}}}
				}
			})
			return out, nil
		},
		Log: funcr.New(func(_, line string) { s.locked(func() { s.lines = append(s.lines, line) }) }, funcr.Options{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	s.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	return s
}

func client(t *testing.T, through *server.Client) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(&rest.Config{Host: "http://memory", Transport: through, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *scene) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// request sees each request of the keeper.
func (s *scene) request(q server.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Verb == "patch" || q.Verb == "delete" || q.Verb == "create" {
		s.writes = append(s.writes, q.Verb+" "+q.Name)
	}
	if s.fault != nil {
		return s.fault(q)
	}
	return nil
}

// wrote returns the writes since the last call.
func (s *scene) wrote() (out []string) {
	synctest.Wait()
	s.locked(func() { out, s.writes = s.writes, nil })
	return out
}

// wants sets the wanted objects and waits.
func (s *scene) wants(objects ...*unstructured.Unstructured) {
	s.t.Helper()
	if err := s.Set(objects); err != nil {
		s.t.Fatal(err)
	}
	pass(time.Second)
}

// wantsPart sets a part of the wanted objects, and waits.
func (s *scene) wantsPart(objects ...*unstructured.Unstructured) {
	s.t.Helper()
	if err := s.SetPart(objects); err != nil {
		s.t.Fatal(err)
	}
	pass(time.Second)
}

// settled fails unless all is as wanted, or the error has a text.
func (s *scene) settled(text string) {
	s.t.Helper()
	if err := s.Settled(); (err == nil) != (text == "") || !strings.Contains(fmt.Sprint(err), text) {
		s.t.Errorf("Settled: %v, want %q", err, text)
	}
}

func (s *scene) get(gvr schema.GroupVersionResource, name string) *unstructured.Unstructured {
	s.t.Helper()
	o, err := s.others.Resource(gvr).Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		s.t.Fatal(err)
	}
	return o
}

func (s *scene) patch(gvr schema.GroupVersionResource, name, patch string) {
	s.t.Helper()
	if _, err := s.others.Resource(gvr).Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
	pass(time.Second)
}

func (s *scene) logged(text string) (n int) {
	s.locked(func() {
		for _, line := range s.lines {
			if strings.Contains(line, text) {
				n++
			}
		}
	})
	return n
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func parsed(text string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = o.UnmarshalJSON(data)
	}
	if err != nil {
		panic(err)
	}
	return o
}

// hooks returns a configuration with a webhook.
func hooks(name, bundle string) *unstructured.Unstructured {
	return parsed(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: ` + name + `}, webhooks: [
		{name: a.example.com, clientConfig: {url: "https://127.0.0.1:1/a", caBundle: "` + bundle + `"}, sideEffects: None, admissionReviewVersions: [v1], timeoutSeconds: 5,
		 rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}]}`)
}

func policy(name string) *unstructured.Unstructured {
	return parsed(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: ` + name + `}, spec: {
		matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}, validations: [{expression: "true"}]}}`)
}

func bundleOf(o *unstructured.Unstructured) any {
	webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	if len(webhooks) == 0 {
		return nil
	}
	return webhooks[0].(map[string]any)["clientConfig"].(map[string]any)["caBundle"]
}

const (
	oneBundle = "LS0tLS1CRUdJTg=="
	twoBundle = "LS0tLS1CRUdJTiBYWFg="
)
