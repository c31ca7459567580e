// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/related"
	"github.com/handwerk-dev/handwerk/engine/cluster/certificate"
	"github.com/handwerk-dev/handwerk/engine/cluster/policy"
	"github.com/handwerk-dev/handwerk/engine/cluster/registration"
	"github.com/handwerk-dev/handwerk/engine/cluster/webhook"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/operate/activity"
	"github.com/handwerk-dev/handwerk/engine/reconcile/admission"
)

// Webhooks say how the API server reaches the webhooks of this process. They are only needed if an admission handler needs a webhook.
type Webhooks struct {
	// Off: no webhook is served or configured, so handlers that need one do not run. Policies are kept all the same.
	Off bool
	// Address is where the process listens. Defaults to :9443. The API server is told the address itself if it is one of
	// the loopback interface, as in 127.0.0.1:0, and it has no URL.
	Address string
	// URL, as in https://10.0.0.5:9443, reaches this process, or all replicas, from the API server. Defaults to the Service.
	URL string
	// Service is the name of a Service in Settings.Namespace that leads from port 443 to all replicas. Defaults to the
	// operator's name with -webhook behind it.
	Service string
	// CertDir has the files tls.crt, tls.key and ca.crt, which are read again when they change: the certificate of the server, and the
	// CAs by which the API server knows it. If it is empty, the operator makes the certificate itself.
	CertDir string
	// Listen opens the address, as in tests whose API server is in the same process. Defaults to that of [net.ListenConfig].
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
}

// requests decides about requests to write objects, and keeps the objects by which the API server does so or asks.
type requests struct {
	engine *Engine
	set    Webhooks
	// keeper keeps policies and webhook configurations in the present term; nil while it knows of none. Complete: it knows of all.
	// Webhooks come later than policies, with the first certificate.
	keeper   atomic.Pointer[registration.Keeper]
	complete atomic.Bool
	// none: the operator has no admission handler, and only deletes what earlier versions with some have left.
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

// serveBy sets up the server of the admission handlers that need one, and of conversions.
func (q *requests) serveBy(hooked map[*dsl.Handler]*dsl.Resource, conversions map[string]webhook.Convert) (err error) {
	e := q.engine
	if e.op.Settings.AdmissionByOthers && q.set.CertDir == "" {
		return errors.New("serving webhooks: want a certificate in files (--webhook-cert-dir): somebody else keeps admission, and tells the API server the CA")
	}
	if e.settings.Namespace == "" {
		return errors.New("serving webhooks: want the namespace of the operator, for its certificate")
	}
	q.set.Address = cmp.Or(q.set.Address, webhook.DefaultAddress)
	q.set.Service = cmp.Or(q.set.Service, e.op.WebhookService())
	if q.certificate = certificate.NewFiles(q.set.CertDir, e.log); q.set.CertDir == "" {
		q.made = q.newCertificate()
		q.certificate = q.made
	}
	reviews := map[string]webhook.Review{}
	for h, r := range hooked {
		reviews[policy.Path(r, h)] = q.review(r, h)
	}
	drain := endpointDelay
	if q.isLocal() {
		drain = 0
	}
	q.server, err = webhook.New(webhook.Options{
		Address: q.set.Address, Listen: q.set.Listen, Certificate: q.certificate.Certificate, Reviews: reviews, Conversions: conversions, Drain: drain,
		Metrics: e.metrics.Webhooks(), Log: e.log,
	})
	return err
}

// endpointDelay is about the time that API servers go on calling a Pod that is no endpoint of its Service any more.
const endpointDelay = 5 * time.Second

// isLocal reports whether only this machine reaches the server.
func (q *requests) isLocal() bool {
	host, _, err := net.SplitHostPort(q.set.Address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// newCertificate returns the certificate that the operator makes itself.
func (q *requests) newCertificate() *certificate.Keeper {
	e := q.engine
	return certificate.New(certificate.Settings{
		Client: e.clients.Dynamic, Namespace: e.settings.Namespace, Name: e.op.WebhookSecret(), Hosts: certificate.Hosts{
			Names: certificate.ServiceNames(e.settings.Namespace, q.set.Service), IPs: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		},
		Labels: map[string]string{policy.OperatorLabel: policy.Label(e.op, e.settings.Namespace)}, Manager: e.op.Name + "-webhooks", Log: e.log,
	})
}

// review returns what answers for one handler.
func (q *requests) review(spec *dsl.Resource, h *dsl.Handler) webhook.Review {
	e := q.engine
	around := admission.Surroundings{
		Prefix: e.op.Prefix(), Indexes: e.indexes.Live(), Secrets: spec.Secrets(h), Log: e.log.WithValues("resource", spec.Name.String()),
		Related: func(*unstructured.Unstructured) dsl.Related { return activity.Nothing{} },
	}
	for r := range e.resources.All {
		if r.spec == spec {
			around.Related = func(o *unstructured.Unstructured) dsl.Related {
				return r.related.View(related.Owner{Key: cache.MetaObjectToName(o), Object: o, Gone: true, Now: time.Now()})
			}
		}
	}
	return func(ctx context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		select {
		case <-q.ready:
			return admission.Decide(ctx, h, r, around)
		case <-ctx.Done():
			return nil // the failure policy decides
		}
	}
}

// listen opens the port, so that an address with port 0 is known.
func (q *requests) listen(ctx context.Context) error {
	if q.server == nil {
		return nil
	}
	if err := q.server.Listen(ctx); err != nil {
		return fmt.Errorf("serving webhooks: %w", err)
	}
	if q.set.URL == "" && q.isLocal() {
		q.set.URL = "https://" + q.server.Address()
	}
	return nil
}

// serve answers reviews until ctx ends, in every process, leader or not.
func (q *requests) serve(ctx context.Context) {
	if q.server == nil {
		return
	}
	var all sync.WaitGroup
	all.Go(func() { q.note(q.certificate.Follow(ctx), "following the certificate of webhooks") })
	serve := func() { q.note(q.server.Serve(ctx), "serving webhooks") }
	early := len(q.conversions()) > 0 // caches may need conversions, which read no caches
	if early {
		all.Go(serve)
	}
	q.engine.settled(ctx)
	if close(q.ready); !early {
		all.Go(serve)
	}
	all.Wait()
}

func (q *requests) note(err error, doing string) {
	if err != nil && !errors.Is(err, context.Canceled) {
		q.engine.log.Error(err, "webhooks or policies failed", "while", doing)
	}
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

// newKeeper returns what keeps the objects of admission, and deletes those that the operator had earlier, under all its names.
func (q *requests) newKeeper() (*registration.Keeper, error) {
	e := q.engine
	names := policy.Labels(e.op, e.settings.Namespace)
	return registration.New(registration.Settings{
		Client: e.clients.Dynamic, Manager: e.op.Name + "-webhooks", Allowed: e.catalog.Allowed, Log: e.log,
		Labels: map[string]string{policy.OperatorLabel: names[0]}, Earlier: map[string][]string{policy.OperatorLabel: names[1:]},
	})
}

// forget deletes the objects of admission of earlier versions. Then it ends: no process makes any. Rules that nobody has written down
// would go on to refuse requests, or no request would get through to webhooks that nobody answers.
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
		if bundle == nil || bytes.Equal(bundle, before) {
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

// settled returns nil if the API server is told about all admission handlers, and otherwise why it is not.
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
