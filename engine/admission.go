// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/certificate"
	"github.com/handwerk-dev/handwerk/engine/cluster/policy"
	"github.com/handwerk-dev/handwerk/engine/cluster/registration"
	"github.com/handwerk-dev/handwerk/engine/cluster/webhook"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// requests decides about requests to write objects, and keeps the objects by which the API server does so or asks.
type requests struct {
	engine *Engine
	set    Webhooks
	// keeper keeps policies and webhook configurations; nil outside of a term. It is complete when it has the webhooks, which come later
	// than policies, with the first certificate.
	keeper   atomic.Pointer[registration.Keeper]
	complete atomic.Bool
	// none: the operator has no admission handler. It only deletes the objects of earlier versions.
	none bool
	// server answers reviews; nil if the API server decides alone. Certificate is that of the server, which made keeps unless it
	// comes from files.
	server      *webhook.Server
	certificate certified
	made        *certificate.Keeper
	// ready is closed when caches are settled, which handlers read.
	ready chan struct{}
}

// certified is a certificate with the CAs by which clients know it.
type certified interface {
	Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Bundle() []byte
	Changes() <-chan struct{}
	// Follow reads changes until ctx ends.
	Follow(ctx context.Context) error
}

// newRequests returns the admission handlers of an operator.
func newRequests(e *Engine) (*requests, error) {
	has := slices.ContainsFunc(e.op.Resources(), func(r *dsl.Resource) bool { return len(r.Admissions()) > 0 || r.Converts() })
	q := &requests{engine: e, set: e.settings.Webhooks, none: !has, ready: make(chan struct{})}
	hooked, conversions := policy.Hooked(e.op), q.conversions()
	if len(hooked)+len(conversions) > 0 && !q.set.Off {
		return q, q.serveBy(hooked, conversions)
	}
	return q, nil
}

// begin keeps the objects of admission until the returned function is called, or ctx ends.
func (q *requests) begin(ctx context.Context) (end func()) {
	if q.engine.op.Settings.AdmissionByOthers {
		return func() {}
	}
	ctx, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { q.keep(ctx) })
	return func() {
		stop()
		done.Wait()
	}
}

// keep keeps policies, webhook configurations and the certificate while this process leads. It returns when ctx has ended.
func (q *requests) keep(ctx context.Context) {
	keeper, err := q.newKeeper()
	if err != nil {
		q.note(err, "keeping policies and webhooks")
		return
	}
	if q.none {
		q.forget(ctx, keeper)
		return
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer q.keeper.Store(nil)
	q.complete.Store(false)
	var certificates <-chan struct{}
	if q.certificate != nil {
		certificates = q.certificate.Changes()
	}
	if q.made != nil {
		all.Go(func() { q.note(q.made.Lead(ctx), "keeping the certificate of webhooks") })
	}
	all.Go(func() { q.note(keeper.Run(ctx), "keeping policies and webhooks") })
	bundle := q.want(keeper, nil)
	q.keeper.Store(keeper)
	for {
		select {
		case <-ctx.Done():
			return
		case <-certificates:
			bundle = q.want(keeper, bundle)
		case <-keeper.Changes():
		}
		if q.made != nil && keeper.Settled() == nil {
			q.made.Confirm(bundle)
		} else if q.made != nil {
			q.made.Confirm(nil)
		}
	}
}

// newKeeper returns a keeper of the objects of admission. It also deletes those that the operator had under its earlier names.
func (q *requests) newKeeper() (*registration.Keeper, error) {
	e := q.engine
	names := policy.Labels(e.op, e.settings.Namespace)
	return registration.New(registration.Settings{
		Client: e.clients.Dynamic, Manager: e.op.Name + "-webhooks", Rules: q.rights, Log: e.log,
		Labels: map[string]string{policy.OperatorLabel: names[0]}, Earlier: map[string][]string{policy.OperatorLabel: names[1:]},
	})
}

// rights returns the rights of the account. An API server whose rights are not those of RBAC may leave some out.
func (q *requests) rights(ctx context.Context) ([]authorizationv1.ResourceRule, error) {
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: metav1.NamespaceDefault}}
	answer, err := q.engine.clients.Kubernetes.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return answer.Status.ResourceRules, nil
}

// forget deletes the objects of admission of earlier versions. Rules that are gone would go on to refuse requests, and
// webhooks without a server would fail them.
func (q *requests) forget(ctx context.Context, keeper *registration.Keeper) {
	ctx, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { q.note(keeper.Run(ctx), "deleting policies and webhooks") })
	q.note(keeper.Set(nil), "deleting policies and webhooks")
	for keeper.Settled() != nil && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-keeper.Changes():
		}
	}
	stop()
	done.Wait()
}

// want sets the objects to keep, if the CAs of the certificate are others than before, and returns these. While there is no
// certificate, policies hold already, and all others stay as they are: a webhook may take the place of a policy.
func (q *requests) want(keeper *registration.Keeper, before []byte) []byte {
	e := q.engine
	objects := policy.Objects(e.op, e.settings.Namespace)
	var bundle []byte
	if q.certificate != nil {
		bundle = q.certificate.Bundle()
		if bundle == nil && before == nil {
			q.note(keeper.SetPart(objects), "keeping policies")
			return nil
		}
		if bundle == nil || before != nil && bytes.Equal(bundle, before) { // an empty one is that of a folder without ca.crt
			return before
		}
		objects = append(objects, policy.Webhooks(e.op, e.settings.Namespace, policy.Client{
			URL: q.set.URL, Namespace: e.settings.Namespace, Service: q.set.Service, Authorities: bundle,
		})...)
		objects = append(objects, q.conversionObjects(bundle)...)
	}
	q.note(keeper.Set(objects), "keeping policies and webhooks")
	q.complete.Store(true)
	return bundle
}

// settled returns an error until the API server knows all admission handlers.
func (q *requests) settled() error {
	keeper := q.keeper.Load()
	if keeper == nil {
		return errors.New("policies and webhooks are not applied yet")
	}
	if err := keeper.Settled(); err != nil {
		return err
	}
	if !q.complete.Load() {
		return errors.New("webhooks wait for their certificate")
	}
	return nil
}

// checks reports whether the API server is told about all admission handlers, and whether this process can answer.
func (q *requests) checks() []ops.Check {
	if q.none {
		return nil
	}
	var out []ops.Check
	if !q.engine.op.Settings.AdmissionByOthers {
		out = []ops.Check{{Name: "admission"}}
		if err := q.settled(); err != nil && q.engine.elector.Leading() {
			out[0].State, out[0].Message = ops.Warn, err.Error()
		}
	}
	if q.server == nil {
		return out
	}
	served := ops.Check{Name: "webhooks"}
	if _, err := q.certificate.Certificate(nil); err != nil {
		served.State, served.Message = ops.Fail, err.Error()
	}
	return append(out, served)
}

func (q *requests) note(err error, doing string) {
	if err != nil && !errors.Is(err, context.Canceled) {
		q.engine.log.Error(err, "webhooks or policies failed", "while", doing)
	}
}
