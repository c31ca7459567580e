// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestServerDoesAsARealOneDoes runs each case on the test kit's server in memory and on the real one:
// what the first does must be what the second does.
func TestServerDoesAsARealOneDoes(t *testing.T) {
	t.Parallel()
	t.Run("in memory", func(t *testing.T) {
		kit.Run(t, func(t *testing.T, c *kit.Cluster) {
			c.Serve(kit.Resource{Name: "foos.v1.example.com", Kind: "Foo"})
			conform(t, c.Config(), "default")
		})
	})
	t.Run("real", func(t *testing.T) {
		config := plane.Config()
		config.QPS = -1
		conform(t, config, plane.Namespace(t))
	})
}

func conform(t *testing.T, config *rest.Config, namespace string) {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return onceOnly{next} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range conformance() {
		s := &scene{t: t, ctx: t.Context(), client: client, namespace: namespace}
		got := test.play(s)
		if got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, test.want)
		}
		s.clean()
	}
}

// onceOnly keeps clients from asking again ten times when an answer says that they may.
type onceOnly struct{ next http.RoundTripper }

func (o onceOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := o.next.RoundTrip(r)
	if err == nil {
		answer.Header.Del("Retry-After")
	}
	return answer, err
}

// scene is where a case plays.
type scene struct {
	t      *testing.T
	ctx    context.Context
	client dynamic.Interface
	// namespace is that of the objects.
	namespace string
}

func (s *scene) foos() dynamic.ResourceInterface {
	return s.client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}).Namespace(s.namespace)
}

func (s *scene) deployments() dynamic.ResourceInterface {
	return s.client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(s.namespace)
}

// object is a Foo named web with what the text says besides.
func (s *scene) object(text string) *unstructured.Unstructured {
	s.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		s.t.Fatal(err)
	}
	if o.GetKind() == "" {
		o.SetAPIVersion("example.com/v1")
		o.SetKind("Foo")
	}
	o.SetName("web")
	return o
}

// pod is a Deployment named web with one container, as of a version.
func (s *scene) pod(container, version string) *unstructured.Unstructured {
	s.t.Helper()
	o := s.object(`{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{image: i, name: ` + container + `}]}}}}`)
	o.SetResourceVersion(version)
	return o
}

func (s *scene) create(text string) *unstructured.Unstructured {
	s.t.Helper()
	out, err := s.foos().Create(s.ctx, s.object(text), metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *scene) merge(patch string, subresource ...string) (*unstructured.Unstructured, error) {
	return s.foos().Patch(s.ctx, "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresource...)
}

func (s *scene) apply(manager string, force bool, text string) (*unstructured.Unstructured, error) {
	return s.foos().Apply(s.ctx, "web", s.object(text), metav1.ApplyOptions{FieldManager: manager, Force: force})
}

func (s *scene) clean() {
	for _, r := range []dynamic.ResourceInterface{s.foos(), s.deployments()} {
		_, _ = r.Patch(s.ctx, "web", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		_ = r.Delete(s.ctx, "web", metav1.DeleteOptions{})
	}
}

// outcome says what came out: an error's code with the fields that it names, or the spec, status,
// labels and generation.
func outcome(o *unstructured.Unstructured, err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		words := []string{fmt.Sprint(status.Status().Code)}
		if d := status.Status().Details; d != nil {
			for _, c := range d.Causes {
				words = append(words, c.Field)
			}
		}
		return strings.TrimSpace(strings.Join(slices.Compact(words), " "))
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("spec %v status %v labels %v generation %d", o.Object["spec"], o.Object["status"], o.GetLabels(), o.GetGeneration())
}

func lines(parts ...string) string { return strings.Join(parts, "; ") }
