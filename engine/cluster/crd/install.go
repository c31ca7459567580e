// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package crd installs the CRDs of an operator in a cluster, and asks the API server what it would reject in them.
package crd

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	poll "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
)

const (
	// establishing is the longest time until a CRD is served.
	establishing = 30 * time.Second
	// lookAgain is the time between checks of that.
	lookAgain = 200 * time.Millisecond
	// looks is how often a CRD is read at most that others change at the same time.
	looks = 5
)

// Settings say how CRDs are installed.
type Settings struct {
	Log logr.Logger
	// TakeOver takes over conflicting fields of other field managers, such as this operator under an earlier name.
	// By default such a conflict is an error.
	TakeOver bool
	// AllowBreaking lets a CRD change so that stored objects may be invalid or lose fields.
	AllowBreaking bool
}

// Install applies the CRDs of the operator's configuration and waits until they are served, for at most 30 seconds.
// If there are none, it logs that. The field manager is the operator's name.
//
// It writes nothing if nothing has changed: a CRD has a digest of its configuration, and all its values. It does
// not change a CRD if that would remove a version that is served or stored, or would change the kind or the scope.
// The error names the CRD, and the verb if a right is missing. Several processes may call it at once.
func Install(ctx context.Context, op *dsl.Operator, config *rest.Config, set Settings) error {
	i, err := connect(op, transport.WithDeadline(config))
	if err != nil {
		return err
	}
	i.Settings = set
	all := i.read(ctx)
	for _, d := range all {
		if d.err == nil {
			d.live, d.err = i.install(ctx, d)
		}
		if d.err != nil {
			return fmt.Errorf("installing CRD of %s: %w", d.of, d.err)
		}
	}
	if len(all) == 0 {
		set.Log.Info("there are no CRDs to install: no resource has a schema")
	}
	for _, d := range all {
		if err := i.await(ctx, d.live); err != nil {
			return fmt.Errorf("installing CRD %s: %w", d.live.GetName(), err)
		}
	}
	return nil
}

// definition is a CRD of the configuration.
type definition struct {
	of      dsl.ResourceName
	desired *unstructured.Unstructured
	// live is the CRD as the cluster has it; nil if it has none.
	live *unstructured.Unstructured
	err  error
}

// read reads all CRDs of the configuration from the cluster, at once.
func (i *installer) read(ctx context.Context) (all []*definition) {
	var reading sync.WaitGroup
	for _, r := range i.op.Resources() {
		if r.CRD == nil {
			continue
		}
		d := &definition{of: r.Name}
		all = append(all, d)
		if d.desired, d.err = i.desired(r.CRD); d.err != nil {
			continue
		}
		reading.Go(func() {
			d.live, d.err = i.get(ctx, d.desired.GetName())
			d.err = refusal(d.err, "get")
		})
	}
	reading.Wait()
	return all
}

// get reads a CRD. It returns nil if the cluster lacks the CRD.
func (i *installer) get(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	live, err := i.client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

// installer installs the CRDs of one operator.
type installer struct {
	Settings
	op      *dsl.Operator
	dynamic dynamic.Interface
	client  dynamic.ResourceInterface
}

func connect(op *dsl.Operator, config *rest.Config) (*installer, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return &installer{op: op, dynamic: client, client: client.Resource(apiextensions.SchemeGroupVersion.WithResource("customresourcedefinitions"))}, nil
}

// desired returns the CRD with the annotation that has its digest.
func (i *installer) desired(tree map[string]any) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	out := (&unstructured.Unstructured{Object: tree}).DeepCopy()
	notes := out.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes[i.op.AppliedAnnotation()] = bookkeeping.AppliedMark + base64.RawURLEncoding.EncodeToString(sum[:9])
	out.SetAnnotations(notes)
	return out, nil
}

// install applies one CRD unless it is up to date, and returns it as it is then. One that was changed since it was read is looked at
// again: a version may be served now that the configuration does not have.
func (i *installer) install(ctx context.Context, d *definition) (live *unstructured.Unstructured, err error) {
	for range looks {
		live, err = i.put(ctx, d)
		if !apierrors.IsConflict(err) || apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
			return live, err
		}
		if d.live, err = i.get(ctx, d.desired.GetName()); err != nil {
			return nil, refusal(err, "get")
		}
	}
	return nil, errors.New("others change it again and again")
}

// put is install for a CRD that is as it was read.
func (i *installer) put(ctx context.Context, d *definition) (*unstructured.Unstructured, error) {
	if d.live == nil {
		i.Log.Info("installing CRD", "crd", d.desired.GetName())
		return i.apply(ctx, d.desired, "create")
	}
	if err := compatible(d.live, d.desired); err != nil {
		return nil, err
	}
	live, err := i.renamed(ctx, d.live)
	if err != nil {
		return nil, err
	}
	d.desired = withClient(d.desired, live)
	if within(d.desired.Object, live.Object) {
		return live, nil // with the annotation, so that removed fields are noticed
	}
	if !i.AllowBreaking {
		breaks, err := i.judge(ctx, live, d.desired)
		if err != nil {
			return nil, err
		}
		if breaks != nil {
			return nil, fmt.Errorf("%w: %s", breaks, breaks.Cure())
		}
	}
	i.Log.Info("updating CRD", "crd", d.desired.GetName())
	update := d.desired.DeepCopy()
	update.SetResourceVersion(live.GetResourceVersion())
	return i.apply(ctx, update, "patch")
}

// withClient returns the CRD with the way to the operator's conversions that the live one has: the running operator keeps it.
func withClient(desired, live *unstructured.Unstructured) *unstructured.Unstructured {
	conversion := []string{"spec", "conversion"}
	for _, o := range []*unstructured.Unstructured{desired, live} {
		if strategy, _, _ := unstructured.NestedString(o.Object, append(conversion, "strategy")...); strategy != string(apiextensions.WebhookConverter) {
			return desired
		}
	}
	kept, _, _ := unstructured.NestedMap(live.Object, conversion...)
	out := desired.DeepCopy()
	if err := unstructured.SetNestedMap(out.Object, kept, conversion...); err != nil {
		return desired // the CRD has no spec, and the API server says so
	}
	return out
}

// renamed takes over the fields of a CRD that earlier names of the operator have applied: they would conflict, and
// stay.
func (i *installer) renamed(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	renamer := patch.NewRenamer(i.op)
	if !renamer.Finds(live) && !renamer.Joins(live) {
		return live, nil
	}
	moved, err := renamer.Move(ctx, patch.Target{Client: i.client, Object: live})
	switch {
	case err != nil:
		return nil, refusal(err, "patch")
	case moved.Object == nil:
		return nil, errors.New("it was deleted meanwhile")
	}
	return moved.Object, nil
}

func (i *installer) apply(ctx context.Context, desired *unstructured.Unstructured, verb string) (*unstructured.Unstructured, error) {
	out, err := i.client.Apply(ctx, desired.GetName(), desired, metav1.ApplyOptions{FieldManager: i.op.Name, Force: i.TakeOver})
	if apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		return nil, fmt.Errorf("%w: if that is this operator's earlier name, add it to metadata.was; otherwise take the CRD over with --install-crds=takeover", err)
	}
	return out, refusal(err, verb)
}

// refusal names the missing right. Applying a new object needs two verbs.
func refusal(err error, verb string) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	if verb == "create" && strings.Contains(err.Error(), "cannot patch") {
		verb = "patch"
	}
	return fmt.Errorf("this process may not %s customresourcedefinitions.apiextensions.k8s.io: --install-crds needs get, create and patch (or install the CRDs before: operator crd --config … | kubectl apply -f -): %w", verb, err)
}

// typed converts a CRD to its Go type.
func typed(tree *unstructured.Unstructured) (*apiextensions.CustomResourceDefinition, error) {
	out := &apiextensions.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree.Object, out); err != nil {
		return nil, fmt.Errorf("reading CRD: %w", err)
	}
	return out, nil
}

// compatible reports why an existing CRD must not become the desired one.
func compatible(there, wanted *unstructured.Unstructured) error {
	live, err := typed(there)
	if err != nil {
		return err
	}
	desired, err := typed(wanted)
	if err != nil {
		return err
	}
	const fixed = "its %s is %s on the cluster and %s in the configuration, which cannot be changed"
	switch {
	case live.DeletionTimestamp != nil:
		return errors.New("it is being deleted, with all its objects")
	case live.Spec.Names.Kind != desired.Spec.Names.Kind:
		return fmt.Errorf(fixed, "kind", live.Spec.Names.Kind, desired.Spec.Names.Kind)
	case live.Spec.Scope != desired.Spec.Scope:
		return fmt.Errorf(fixed, "scope", live.Spec.Scope, desired.Spec.Scope)
	}
	for _, version := range live.Status.StoredVersions {
		if !hasVersion(desired, version) {
			return fmt.Errorf("objects may be stored as %s, a version that the configuration does not have: their API would be gone (operator migrate %s writes them again, and removes the version from status.storedVersions)", version, live.Name)
		}
	}
	for _, version := range live.Spec.Versions {
		if version.Served && !hasVersion(desired, version.Name) {
			return fmt.Errorf("version %s is served, and the configuration does not have it: its clients would lose it (set served to false first)", version.Name)
		}
	}
	return nil
}

// hasVersion reports whether a CRD has a version, served or not.
func hasVersion(crd *apiextensions.CustomResourceDefinition, name string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensions.CustomResourceDefinitionVersion) bool { return v.Name == name })
}

// within reports whether a value exists, possibly with additional keys in maps from the server or others.
func within(desired, live any) bool {
	switch d := desired.(type) {
	case map[string]any:
		l, is := live.(map[string]any)
		for key, value := range d {
			if found, has := l[key]; !has || !within(value, found) {
				return false
			}
		}
		return is
	case []any:
		l, is := live.([]any)
		return is && slices.EqualFunc(d, l, within)
	default:
		return reflect.DeepEqual(desired, live)
	}
}

// await waits until the CRD is served. One that is already takes no request.
func (i *installer) await(ctx context.Context, live *unstructured.Unstructured) error {
	missing, err := unmet(live)
	if missing == "" || err != nil {
		return err
	}
	err = poll.PollUntilContextTimeout(ctx, lookAgain, establishing, true, func(ctx context.Context) (bool, error) {
		now, err := i.client.Get(ctx, live.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, refusal(err, "get")
		}
		missing, err = unmet(now)
		return missing == "", err
	})
	if poll.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("it is not served after %v: %s", establishing, missing)
	}
	return err
}

// unmet returns why a CRD is not served; empty if it is.
func unmet(there *unstructured.Unstructured) (string, error) {
	live, err := typed(there)
	if err != nil {
		return "", err
	}
	for _, wanted := range []apiextensions.CustomResourceDefinitionConditionType{apiextensions.NamesAccepted, apiextensions.Established} {
		switch c := apihelpers.FindCRDCondition(live, wanted); {
		case c == nil:
			return fmt.Sprintf("it has no condition %s", wanted), nil
		case c.Status != apiextensions.ConditionTrue:
			return fmt.Sprintf("%s is %s: %s", wanted, c.Status, c.Message), nil
		}
	}
	return "", nil
}
