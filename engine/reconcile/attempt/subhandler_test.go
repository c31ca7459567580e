// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// TestARefusalIsWhatASubHandlerFailedWith holds that of several errors the one is kept that people can mend: the server refused a
// request, for lack of a right or by a policy.
func TestARefusalIsWhatASubHandlerFailedWith(t *testing.T) {
	refusals := map[string]error{
		"a right is missing": apierrors.NewForbidden(schema.GroupResource{Resource: "foos"}, "web", errors.New("no")),
		"a webhook denies it": &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid, Message: `admission webhook "w" denied the request: no`,
		}},
	}
	asks := map[string]func(refusal error) (dsl.Func, []dsl.Option){
		"the handler": func(refusal error) (dsl.Func, []dsl.Option) {
			return func(context.Context, *dsl.Request) error { return refusal }, nil
		},
		"its filter": func(refusal error) (dsl.Func, []dsl.Option) {
			return func(context.Context, *dsl.Request) error { return nil },
				[]dsl.Option{dsl.When(func(*dsl.Subject) (bool, error) { return false, refusal })}
		},
	}
	for why, refusal := range refusals {
		for who, ask := range asks {
			t.Run(who+": "+why, func(t *testing.T) {
				settings := &SubhandlerSettings{Resource: "foos", Metrics: ops.NewMetrics(), Errors: noOutage{}, Texts: NewTexts(logr.Discard())}
				run := &Subhandlers{SubhandlerSettings: settings, Troubles: &Troubles{}}
				code := run.Around(func(_ context.Context, r *dsl.Request) error {
					r.Handle("first", func(context.Context, *dsl.Request) error { return errors.New("not yet") })
					do, options := ask(refusal)
					r.Handle("second", do, options...)
					return nil
				})
				r := &dsl.Request{Subject: dsl.Subject{Object: &unstructured.Unstructured{Object: map[string]any{}}, Log: logr.Discard()}, Patch: dsl.NewPatch()}
				if err := code(t.Context(), r); err == nil {
					t.Error("it does not wait")
				}
				if !errors.Is(run.Failed, refusal) {
					t.Errorf("it failed with %v", run.Failed)
				}
			})
		}
	}
}

// noOutage takes no error for one of an outage.
type noOutage struct{}

func (noOutage) Logged(error) bool    { return false }
func (noOutage) Covered(error) bool   { return false }
func (noOutage) Unreached(error) bool { return false }
