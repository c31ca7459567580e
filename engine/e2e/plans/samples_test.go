// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// version is a version of a configuration: its texts by file.
type version map[string]string

// operatorFile is the file of an operator in the folder of its sample.
const operatorFile = "operator.yaml"

// sample is an operator in samples with the objects that it works on. $NAMESPACE and $OTHER are two namespaces.
type sample struct{ name, objects string }

// read reads the configuration of a sample.
func (s sample) read(t *testing.T) version {
	t.Helper()
	out, folder := version{}, filepath.Join("../../../samples", s.name)
	parts, err := filepath.Glob(filepath.Join(folder, "parts", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(parts, filepath.Join(folder, operatorFile)) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(folder, file)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(text)
	}
	return out
}

// write writes a version to a folder.
func (v version) write(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range maps.All(v) {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// volume is a volume for any claim: the control plane makes none for claims.
func volume(n int) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: $NAMESPACE-%d}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /nowhere}}
---
`, n)
}

func sampleOf(t *testing.T, name string) sample {
	t.Helper()
	for _, s := range samples() {
		if s.name == name {
			return s
		}
	}
	t.Fatalf("there is no sample %s", name)
	return sample{}
}

// samples are the samples without functions in Go that come to rest and whose children the control plane serves.
func samples() []sample {
	return []sample{
		{"webapp", `
apiVersion: samples.handwerk.dev/v1alpha1
kind: WebApp
metadata: {name: shop}
spec: {image: "nginx:1.27", port: 80, replicas: 2, host: shop.example.com, env: {GREETING: hello}}
---
apiVersion: samples.handwerk.dev/v1alpha1
kind: WebApp
metadata: {name: docs}
spec: {image: "httpd:2"}
`},
		{"foo-yaml", `
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: Foo
metadata: {name: one}
spec: {deploymentName: one, replicas: 1}
---
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: Foo
metadata: {name: two}
spec: {deploymentName: two, replicas: 2}
`},
		{"shop", `
apiVersion: samples.handwerk.dev/v1alpha1
kind: Shop
metadata: {name: corner}
spec: {frontend: {image: "unit:1.29", replicas: 2}, backend: {image: "unit:1.28"}}
`},
		{"tenant", `
apiVersion: v1
kind: Namespace
metadata:
  name: $NAMESPACE
  labels: {tenant.example.com/size: large}
  annotations: {tenant.example.com/admins: "alice,bob"}
`},
		{"rollout", `
apiVersion: samples.handwerk.dev/v1alpha1
kind: Release
metadata: {name: shop}
spec: {image: "nginx:1.28", replicas: 4}
`},
		{"canary", `
apiVersion: samples.handwerk.dev/v1alpha1
kind: PodSet
metadata: {name: shop}
spec: {image: "nginx:1.28", replicas: 3}
`},
		{"secret-copier", `
apiVersion: v1
kind: Namespace
metadata: {name: $OTHER, labels: {secrets.example.com/receive-from: $NAMESPACE}}
---
apiVersion: v1
kind: Secret
metadata: {name: registry, labels: {secrets.example.com/copy: "true"}}
type: Opaque
stringData: {password: swordfish}
`},
		{"shared-ingress", `
apiVersion: v1
kind: Namespace
metadata: {name: $NAMESPACE, labels: {ingress.example.com/host: shop.example.com}}
---
apiVersion: v1
kind: Service
metadata: {name: cart, labels: {ingress.example.com/expose: "true"}}
spec: {selector: {app: cart}, ports: [{port: 80, targetPort: 8080}]}
`},
		{"route-certificate", `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, labels: {certificates.example.com/issuer: letsencrypt}}
spec: {parentRefs: [{name: public}], hostnames: [shop.example.com], rules: [{backendRefs: [{name: shop, port: 80}]}]}
`},
		{"ttl", `
apiVersion: samples.handwerk.dev/v1alpha1
kind: Preview
metadata: {name: try-it}
spec: {ttl: 1h}
`},
		{"password", `
apiVersion: samples.handwerk.dev/v1alpha1
kind: Login
metadata: {name: shop}
spec: {user: shop}
`},
		{"approval", `
apiVersion: samples.handwerk.dev/v1alpha1
kind: Change
metadata: {name: colours}
spec: {settings: {background: green}}
---
apiVersion: samples.handwerk.dev/v1alpha1
kind: Change
metadata: {name: words}
spec: {settings: {greeting: hello}}
`},
		{"job-machine", `
apiVersion: samples.handwerk.dev/v1alpha1
kind: Task
metadata: {name: hello}
spec: {image: busybox, command: [echo, hello]}
`},
		{"causes", `
apiVersion: samples.handwerk.dev/v1alpha1
kind: Parcel
metadata: {name: books}
spec: {to: Hamburg, weight: 12}
`},
		{"index", `
apiVersion: v1
kind: ConfigMap
metadata: {name: small, labels: {samples.handwerk.dev/kind: plan}}
data: {hosts: "2"}
---
apiVersion: samples.handwerk.dev/v1alpha1
kind: Site
metadata: {name: shop}
spec: {plan: small, hosts: [shop.example.com]}
---
apiVersion: samples.handwerk.dev/v1alpha1
kind: Site
metadata: {name: copycat}
spec: {plan: small, hosts: [copycat.example.com, shop.example.com]}
`},
		{"ephemeral-volume-claim-yaml", volume(1) + volume(2) + volume(3) + `
apiVersion: samples.handwerk.dev/v1alpha1
kind: EphemeralVolumeClaim
metadata: {name: scratch, labels: {team: blue}}
spec: {size: 1Gi}
`},
	}
}
