// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/cluster/policy"
)

const (
	// injected is the annotation by which cert-manager fills in the CA of a certificate (https://cert-manager.io/docs/concepts/ca-injector/).
	injected = "cert-manager.io/inject-ca-from"
	// certificates is the folder of the certificate in the Deployment.
	certificates = "/etc/handwerk-webhook"
)

// Space is the namespace, without quotes.
func (b *bundle) Space() string { return b.flags.namespace }

// webhookService is the name of the Service of webhooks.
func (b *bundle) webhookService() string { return b.Name + "-webhook" }

// leaveAdmission has the operator leave the objects of admission to those who apply the bundle. It returns the arguments for it.
func (b *bundle) leaveAdmission() []string {
	b.op.Settings.AdmissionByOthers = true
	args := []string{"--" + keepFlag + "=false"}
	if b.Certificates = b.Webhooks; b.Certificates {
		args = append(args, "--webhook-cert-dir="+certificates)
	}
	return args
}

// admission returns the policies and the webhook configurations. There are none if the operator only converts versions.
func (b *bundle) admission() ([]file, error) {
	hooks := policy.Webhooks(b.op, b.flags.namespace, policy.Client{Namespace: b.flags.namespace, Service: b.webhookService()})
	for _, o := range hooks {
		o.SetAnnotations(b.injection())
	}
	all := slices.Concat(policy.Objects(b.op, b.flags.namespace), hooks)
	switch {
	case len(all) == 0 && b.Webhooks:
		return nil, nil
	case len(all) == 0:
		return nil, fmt.Errorf("printing admission: operator %s has no rules about requests, and converts no versions: leave --admission out", b.op.Name)
	}
	var trees []map[string]any
	for _, o := range all {
		trees = append(trees, o.Object)
	}
	var text bytes.Buffer
	err := writeYAML(&text, trees)
	return []file{{"admission.yaml", text.String()}}, err
}

// injection returns the annotation by which cert-manager fills in the CA of webhooks.
func (b *bundle) injection() map[string]string {
	return map[string]string{injected: b.flags.namespace + "/" + b.webhookService()}
}

// crds returns the CRDs of the operator. Those that the operator converts name its Service.
func (b *bundle) crds() (out []map[string]any, err error) {
	path := []string{"spec", "conversion", "webhook", "clientConfig", "service"}
	for _, tree := range crdsOf(b.op) {
		if _, converts, _ := unstructured.NestedFieldNoCopy(tree, path...); !converts {
			out = append(out, tree)
			continue
		}
		copied, err := plain.Value(tree)
		if err != nil {
			return nil, err
		}
		crd := &unstructured.Unstructured{Object: copied.(map[string]any)}
		err = errors.Join(
			unstructured.SetNestedField(crd.Object, b.flags.namespace, append(path, "namespace")...),
			unstructured.SetNestedField(crd.Object, b.webhookService(), append(path, "name")...))
		if err != nil {
			return nil, err
		}
		if b.Certificates {
			crd.SetAnnotations(b.injection())
		}
		out = append(out, crd.Object)
	}
	return out, nil
}
