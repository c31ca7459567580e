// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/engine/cluster/webhook"
)

// byName decides as the object's name says.
func byName(ctx context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	switch r.Name {
	case "deny":
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "not on a " + string(r.Operation), Code: 422, Reason: metav1.StatusReasonInvalid}}
	case "warn":
		return &admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{"this is deprecated"}}
	case "dry":
		return &admissionv1.AdmissionResponse{Allowed: r.DryRun != nil && *r.DryRun, Result: &metav1.Status{Message: "only as a dry run"}}
	case "panic":
		panic("secret text")
	case "hang":
		<-ctx.Done()
	}
	return &admissionv1.AdmissionResponse{Allowed: true}
}

// adds adds a value to an object of that name.
func adds(_ context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	out := &admissionv1.AdmissionResponse{Allowed: true}
	if r.Name == "mutate" {
		out.Patch = []byte(`[{"op": "add", "path": "/data/added", "value": "x"}]`)
	}
	return out
}

// warnings keeps what the API server warns of.
type warnings struct {
	mu   sync.Mutex
	seen []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, text)
}

// take returns the warnings so far, and forgets them.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.seen
	w.seen = nil
	return out
}

// warned returns a client and the warnings that it gets.
func warned(t *testing.T) (dynamic.Interface, *warnings) {
	t.Helper()
	w, config := &warnings{}, plane.Config()
	config.WarningHandler = w
	client, err := dynamic.NewForConfig(rest.CopyConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	return client, w
}

// TestTheAPIServerTakesTheAnswers holds what a person sees of each answer.
func TestTheAPIServerTakesTheAnswers(t *testing.T) {
	t.Parallel()
	o := start(t, 1, webhook.Options{Reviews: map[string]webhook.Review{"/validate": byName, "/mutate": adds}}, 0,
		func(o *operator, bundle string) []*unstructured.Unstructured {
			return []*unstructured.Unstructured{
				o.configuration("ValidatingWebhookConfiguration", "v", bundle, hook{"v", o.replicas[0].url("/validate"), "Fail", 1}),
				o.configuration("MutatingWebhookConfiguration", "m", bundle, hook{"m", o.replicas[0].url("/mutate"), "Ignore", 1}),
			}
		})
	tests := map[string]struct {
		name   string
		dryRun []string
		want   string // of the error
		warns  []string
		data   map[string]any
	}{
		"an allowed object is stored":               {name: "allow", data: map[string]any{"a": "b"}},
		"a denial has the message":                  {name: "deny", want: "denied the request: not on a CREATE"},
		"a warning gets to the client":              {name: "warn", warns: []string{"this is deprecated"}, data: map[string]any{"a": "b"}},
		"a patch changes the object":                {name: "mutate", data: map[string]any{"a": "b", "added": "x"}},
		"a dry run is known":                        {name: "dry", dryRun: []string{metav1.DryRunAll}, data: map[string]any{"a": "b"}},
		"the same without a dry run":                {name: "dry", want: "only as a dry run"},
		"a panic denies, whatever the policy":       {name: "panic", want: "the webhook panicked; the operator's log says why, with the id "},
		"a timeout counts as a failure and says so": {name: "hang", want: "/validate gave no response within 900ms, shortly before the timeout of the request"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			client, w := warned(t)
			got, err := o.create(t.Context(), client, tt.name, tt.dryRun...)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("the API server says %v", err)
			}
			if diff := cmp.Diff(tt.warns, w.seen); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if err != nil {
				t.Log(err)
				return
			}
			if diff := cmp.Diff(tt.data, got.Object["data"]); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheFailurePolicyDecidesWithoutAServer holds what becomes of requests while no process runs.
func TestTheFailurePolicyDecidesWithoutAServer(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Fail", "Ignore"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			o := start(t, 1, webhook.Options{Reviews: map[string]webhook.Review{"/validate": byName}}, 0,
				func(o *operator, bundle string) []*unstructured.Unstructured {
					return []*unstructured.Unstructured{o.configuration("ValidatingWebhookConfiguration", "v", bundle, hook{"v", o.replicas[0].url("/validate"), policy, 2})}
				})
			if _, err := o.create(t.Context(), plane.Dynamic(), "deny"); err == nil || !strings.Contains(err.Error(), "not on a CREATE") {
				t.Errorf("while it runs: %v", err)
			}
			o.replicas[0].stop()
			_, err := o.create(t.Context(), plane.Dynamic(), "deny")
			if policy == "Fail" && (err == nil || !strings.Contains(err.Error(), "failed calling webhook")) || policy == "Ignore" && err != nil {
				t.Errorf("while none runs: %v", err)
			}
		})
	}
}

// TestTheAPIServerTriesARefusedReviewAgain holds that a full queue delays requests: the API server heeds Retry-After.
func TestTheAPIServerTriesARefusedReviewAgain(t *testing.T) {
	t.Parallel()
	slow := func(_ context.Context, _ *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		<-time.After(100 * time.Millisecond)
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	o := start(t, 1, webhook.Options{Reviews: map[string]webhook.Review{"/validate": slow}, AtOnce: 2, Waiting: 2}, 0,
		func(o *operator, bundle string) []*unstructured.Unstructured {
			return []*unstructured.Unstructured{o.configuration("ValidatingWebhookConfiguration", "v", bundle, hook{"v", o.replicas[0].url("/validate"), "Fail", 20})}
		})
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if _, err := o.create(t.Context(), plane.Dynamic(), "a", metav1.DryRunAll); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if refused := o.replicas[0].counts.of("/validate", webhook.Refused); refused == 0 {
		t.Error("the server refused no request")
	}
}
