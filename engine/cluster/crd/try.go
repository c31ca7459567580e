// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
)

// Trial is what a cluster says of a resource's CRD before it is installed.
type Trial struct {
	// Rejected says what the API server would reject in it, or [Install].
	Rejected []error
	// Breaks says how the CRD would break what the cluster has; nil if it would not.
	Breaks *BreakingError
	// Untried says what could not be found out for lack of rights.
	Untried []error
}

// Try asks the API server by a dry run what it would reject in a resource's CRD, and compares the CRD with that of the cluster. It
// writes nothing. Without a CRD there is nothing to say. The error says that the server could not be asked.
func Try(ctx context.Context, op *dsl.Operator, config *rest.Config, r *dsl.Resource) (out Trial, err error) {
	if r.CRD == nil {
		return out, nil
	}
	i, err := connect(op, transport.WithDeadline(config))
	if err != nil {
		return out, err
	}
	desired, err := i.desired(r.CRD)
	if err != nil {
		return out, err
	}
	out.Rejected, err = i.rejected(ctx, desired)
	if apierrors.IsForbidden(err) {
		out.Untried = append(out.Untried, fmt.Errorf("the API server was not asked whether it accepts the CRD of %s: that is a dry run, which needs the rights to create and patch CRDs: %w", r.Name, err))
		err = nil
	}
	if err != nil || len(out.Rejected) > 0 {
		return out, err
	}
	live, err := i.get(ctx, desired.GetName())
	switch {
	case apierrors.IsForbidden(err):
		out.Untried = append(out.Untried, fmt.Errorf("the CRD of %s was not compared with that of the cluster: %w", r.Name, err))
		return out, nil
	case err != nil || live == nil:
		return out, err
	}
	if err := compatible(live, desired); err != nil {
		out.Rejected = append(out.Rejected, fmt.Errorf("--install-crds rejects the CRD: %w", err))
		return out, nil
	}
	if within(desired.Object, live.Object) {
		return out, nil
	}
	out.Breaks, err = i.judge(ctx, live, desired)
	return out, err
}

// rejected returns what the API server would reject in a CRD.
func (i *installer) rejected(ctx context.Context, desired *unstructured.Unstructured) (rejected []error, err error) {
	// Conflicts of field managers are not faults of a configuration.
	options := metav1.ApplyOptions{FieldManager: i.op.Name, DryRun: []string{metav1.DryRunAll}, Force: true}
	_, err = i.client.Apply(ctx, desired.GetName(), desired, options)
	if err == nil || !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		return nil, err
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && status.ErrStatus.Details != nil {
		for _, cause := range status.ErrStatus.Details.Causes {
			rejected = append(rejected, fmt.Errorf("the API server rejects the CRD: %s: %s", cause.Field, cause.Message))
		}
	}
	if len(rejected) == 0 {
		rejected = []error{fmt.Errorf("the API server rejects the CRD: %w", err)}
	}
	return rejected, nil
}
