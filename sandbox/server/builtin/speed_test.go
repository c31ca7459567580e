// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/builtin"
)

// usual is a Deployment of usual size.
const usual = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}, annotations: {a: "some text that is a bit longer than others, for the size"}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, tier: front}}
    spec:
      serviceAccountName: web
      initContainers:
      - {name: init, image: "example.com/init:1.2", command: [sh, -c, "echo hello world; sleep 3"], volumeMounts: [{name: config, mountPath: /etc/config}]}
      containers:
      - name: web
        image: example.com/web:1.2.3
        args: [--listen=:8080, --verbose, --config=/etc/config/web.yaml]
        env: [{name: A, value: b}, {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: PASSWORD, valueFrom: {secretKeyRef: {name: s, key: password}}}]
        ports: [{name: http, containerPort: 8080}, {name: metrics, containerPort: 9090}]
        readinessProbe: {httpGet: {path: /ready, port: http}}
        livenessProbe: {httpGet: {path: /live, port: http}, initialDelaySeconds: 5}
        resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
        volumeMounts: [{name: config, mountPath: /etc/config}, {name: tmp, mountPath: /tmp}]
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, runAsNonRoot: true, capabilities: {drop: [ALL]}}
      volumes: [{name: config, configMap: {name: web}}, {name: tmp, emptyDir: {}}]
`

// BenchmarkDeployment measures what each write of a Deployment costs: Decode, of a changed spec or of none, and Update.
func BenchmarkDeployment(b *testing.B) {
	form := builtin.New().Builtin(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}).(server.Typed)
	sent := unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(usual), &sent.Object); err != nil {
		b.Fatal(err)
	}
	if _, err := form.Decode(sent.Object, nil); err != nil {
		b.Fatal(err)
	}
	other := sent.DeepCopy()
	if err := unstructured.SetNestedField(other.Object, int64(3), "spec", "replicas"); err != nil {
		b.Fatal(err)
	}
	for name, stored := range map[string]map[string]any{"Decode": other.Object, "DecodeSame": sent.Object} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := form.Decode(sent.Object, stored); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("Update", func(b *testing.B) {
		for b.Loop() {
			if errs := form.Update(b.Context(), sent.Object, sent.Object); len(errs) > 0 {
				b.Fatal(errs)
			}
		}
	})
}
