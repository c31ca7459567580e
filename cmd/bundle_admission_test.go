// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// TestABundleHasAdmission holds what --admission prints, and that the operator may then do less.
func TestABundleHasAdmission(t *testing.T) {
	const (
		policies    = "../samples/policy/operator.yaml"
		conversions = "../samples/versions/operator.yaml"
		code        = "testdata/bundle/hooked.yaml"
	)
	for _, tc := range []struct {
		name, file     string
		kinds          []string
		args           []string
		hooks, rights  bool // webhooks get certificates of cert-manager; the account may write objects of admission
		withoutTheFlag bool
	}{
		{name: "policies", file: policies, args: []string{"--keep-admission=false"}, kinds: []string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}},
		{name: "webhooks", file: code, args: []string{"--webhook-service=handwerk-hooked-webhook", "--keep-admission=false", "--webhook-cert-dir=/etc/handwerk-webhook"}, kinds: []string{"ValidatingWebhookConfiguration"}, hooks: true},
		{name: "conversions", file: conversions, args: []string{"--webhook-service=handwerk-versions-webhook", "--keep-admission=false", "--webhook-cert-dir=/etc/handwerk-webhook"}, hooks: true},
		{name: "policies without the flag", file: policies, rights: true, withoutTheFlag: true},
		{name: "conversions without the flag", file: conversions, args: []string{"--webhook-service=handwerk-versions-webhook"}, rights: true, withoutTheFlag: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := []string{"--config", tc.file, "--namespace=shop"}
			if !tc.withoutTheFlag {
				args = append(args, "--admission")
			}
			all := plainObjects(t, bundled(t, standard(t), args...))
			var kinds []string
			service := ""
			for _, o := range all {
				kind := o["kind"].(string)
				if strings.HasPrefix(fmt.Sprint(o["apiVersion"]), "admissionregistration.k8s.io/") && !slices.Contains(kinds, kind) {
					kinds = append(kinds, kind)
				}
				if name, _, _ := unstructured.NestedString(o, "metadata", "name"); kind == "Service" && strings.HasSuffix(name, "-webhook") {
					service = name
				}
				checkCaller(t, o, tc.hooks)
			}
			slices.Sort(kinds)
			if diff := cmp.Diff(tc.kinds, kinds); diff != "" {
				t.Errorf("kinds of admission (-want +got):\n%s", diff)
			}
			if (service != "") != strings.Contains(fmt.Sprint(tc.args), "--webhook-service="+service) {
				t.Errorf("the Service is %q", service)
			}
			if got := argsOfAdmission(all); !cmp.Equal(got, tc.args) {
				t.Errorf("the arguments are %v, want %v", got, tc.args)
			}
			if got := mayWriteAdmission(all); got != tc.rights {
				t.Errorf("the account may write objects of admission: %v", got)
			}
			if tc.hooks {
				checkCertificate(t, all, service)
			}
		})
	}
}

// plainObjects returns objects with the numbers that [unstructured] takes.
func plainObjects(t *testing.T, all map[string]map[string]any) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for name, o := range all {
		tree, err := plain.Value(o)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = tree.(map[string]any)
	}
	return out
}

// checkCaller holds that an object by which the API server calls the operator names the Service in the namespace of the bundle, and that
// cert-manager fills in the CA.
func checkCaller(t *testing.T, o map[string]any, injected bool) {
	t.Helper()
	u := &unstructured.Unstructured{Object: o}
	service, _, _ := unstructured.NestedMap(o, "spec", "conversion", "webhook", "clientConfig", "service")
	hooks, _, _ := unstructured.NestedSlice(o, "webhooks")
	if len(hooks) > 0 {
		service, _, _ = unstructured.NestedMap(hooks[0].(map[string]any), "clientConfig", "service")
	}
	if service == nil {
		return
	}
	if service["namespace"] != "shop" || !strings.HasPrefix(fmt.Sprint(service["name"]), "handwerk-") {
		t.Errorf("%s %s has the service %v", u.GetKind(), u.GetName(), service)
	}
	want := ""
	if injected {
		want = fmt.Sprint("shop/", service["name"])
	}
	if got := u.GetAnnotations()["cert-manager.io/inject-ca-from"]; got != want {
		t.Errorf("cert-manager takes the CA of %s %s from %q, want %q", u.GetKind(), u.GetName(), got, want)
	}
}

// argsOfAdmission returns the arguments of the Deployment that are about admission.
func argsOfAdmission(all map[string]map[string]any) (out []string) {
	for _, o := range all {
		if o["kind"] != "Deployment" {
			continue
		}
		pod, _, _ := unstructured.NestedMap(o, "spec", "template", "spec")
		for _, arg := range container(pod).(map[string]any)["args"].([]any) {
			if text := arg.(string); strings.Contains(text, "webhook") || strings.Contains(text, "admission") {
				out = append(out, text)
			}
		}
	}
	return out
}

// mayWriteAdmission reports whether a role grants writes of objects of admission, of CRDs or of Secrets.
func mayWriteAdmission(all map[string]map[string]any) bool {
	for _, o := range all {
		rules, _, _ := unstructured.NestedSlice(o, "rules")
		for _, rule := range rules {
			text := fmt.Sprint(rule)
			if !slices.ContainsFunc([]string{"create", "patch", "update", "delete"}, func(verb string) bool { return strings.Contains(text, verb) }) {
				continue
			}
			if strings.Contains(text, "admissionregistration.k8s.io") || strings.Contains(text, "customresourcedefinitions") || strings.Contains(text, "secrets") {
				return true
			}
		}
	}
	return false
}

// checkCertificate holds that the Pods mount the Secret that cert-manager makes, for the name of the Service.
func checkCertificate(t *testing.T, all map[string]map[string]any, service string) {
	t.Helper()
	made := all["Certificate "+service]
	secret, _, _ := unstructured.NestedString(made, "spec", "secretName")
	names, _, _ := unstructured.NestedStringSlice(made, "spec", "dnsNames")
	if !slices.Contains(names, service+".shop.svc") {
		t.Errorf("the certificate is for %v", names)
	}
	deployment := all["Deployment "+strings.TrimSuffix(service, "-webhook")]
	volumes, _, _ := unstructured.NestedSlice(deployment, "spec", "template", "spec", "volumes")
	if !slices.ContainsFunc(volumes, func(v any) bool {
		name, _, _ := unstructured.NestedString(v.(map[string]any), "secret", "secretName")
		return name == secret && secret != ""
	}) {
		t.Errorf("the Pods have the volumes %v, and the certificate is in the Secret %q", volumes, secret)
	}
}

// TestInjectionKeepsAnnotations holds that a CRD with annotations of its own does not lose them to that of cert-manager.
func TestInjectionKeepsAnnotations(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAnnotations(map[string]string{"theirs": "x"})
	(&bundle{Name: "handwerk-a", flags: &bundleFlags{namespace: "shop"}}).inject(o)
	want := map[string]string{"theirs": "x", "cert-manager.io/inject-ca-from": "shop/handwerk-a-webhook"}
	if diff := cmp.Diff(want, o.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}
