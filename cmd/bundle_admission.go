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

// PlainNamespace is the namespace without quotes, for names in DNS.
func (b *bundle) PlainNamespace() string { return b.flags.namespace }

// webhookService is the name of the Service of webhooks.
func (b *bundle) webhookService() string { return b.Name + "-webhook" }

// leaveAdmission makes the operator leave the objects of admission alone, and returns the arguments for that.
func (b *bundle) leaveAdmission() []string {
	b.op.Settings.AdmissionByOthers = true
	args := []string{"--" + keepFlag + "=false"}
	if b.Certificates = b.Webhooks; b.Certificates {
		args = append(args, "--webhook-cert-dir="+certificates)
	}
	return args
}

// admission returns the policies and the webhook configurations. An operator that only converts versions has none.
func (b *bundle) admission() ([]file, error) {
	hooks := policy.Webhooks(b.op, b.flags.namespace, policy.Client{Namespace: b.flags.namespace, Service: b.webhookService()})
	for _, o := range hooks {
		b.inject(o)
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

// inject adds the annotation by which cert-manager fills in the CA of webhooks.
func (b *bundle) inject(o *unstructured.Unstructured) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[injected] = b.flags.namespace + "/" + b.webhookService()
	o.SetAnnotations(annotations)
}

// crds returns the CRDs of the operator. A CRD with a conversion names the Service of webhooks.
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
			b.inject(crd)
		}
		out = append(out, crd.Object)
	}
	return out, nil
}
