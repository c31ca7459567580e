// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/related"
	"github.com/handwerk-dev/handwerk/engine/cluster/certificate"
	"github.com/handwerk-dev/handwerk/engine/cluster/policy"
	"github.com/handwerk-dev/handwerk/engine/cluster/webhook"
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

// serveBy sets up the server of the admission handlers that need one, and of conversions.
func (q *requests) serveBy(hooked map[*dsl.Handler]*dsl.Resource, conversions map[string]webhook.Convert) (err error) {
	e := q.engine
	if e.op.Settings.AdmissionByOthers && q.set.CertDir == "" {
		return errors.New("serving webhooks: a certificate in files is required (--webhook-cert-dir): others keep admission, and tell the API server the CA")
	}
	if e.settings.Namespace == "" {
		return errors.New("serving webhooks: the namespace of the operator is required for its certificate")
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

// review returns the function that answers for one handler.
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
	if q.engine.settled(ctx); ctx.Err() == nil {
		close(q.ready) // else the caches are not filled, and reviews must not be decided by them
	}
	if !early {
		all.Go(serve)
	}
	all.Wait()
}
