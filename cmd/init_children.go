// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

// beginnings returns the children that init can write, in the order of writing.
func beginnings() []beginning {
	return []beginning{
		{kind: "ConfigMap", name: "settings", spec: []string{"settings"}, template: configMap},
		{kind: "Deployment", name: "deployment", spec: []string{"image", "replicas", "port"}, status: []string{"readyReplicas"}, template: deployment},
		{kind: "StatefulSet", name: "statefulSet", spec: []string{"image", "replicas", "port"}, status: []string{"readyReplicas"}, template: statefulSet},
		{kind: "Service", name: "service", spec: []string{"port"}, status: []string{"url"}, template: service},
		{kind: "Ingress", name: "ingress", spec: []string{"host", "port"}, template: ingress},
		{kind: "Job", name: "job", spec: []string{"image"}, template: job},
		{kind: "CronJob", name: "cronJob", spec: []string{"image", "schedule"}, template: cronJob},
	}
}

const configMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: "${self.metadata.name}"}
data: ${self.?spec.?settings.orValue({})}
`

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: "${self.metadata.name}"}
spec:
  replicas: ${self.spec.replicas}
  selector: {matchLabels: {app: "${self.metadata.name}"}}
  template:
    metadata: {labels: {app: "${self.metadata.name}"}}
    spec:
      containers:
        - name: main
          image: ${self.spec.image}
          ports: [{containerPort: "${self.spec.port}"}]
`

const statefulSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "${self.metadata.name}"}
spec:
  replicas: ${self.spec.replicas}
  serviceName: ${self.metadata.name}
  selector: {matchLabels: {app: "${self.metadata.name}"}}
  template:
    metadata: {labels: {app: "${self.metadata.name}"}}
    spec:
      containers:
        - name: main
          image: ${self.spec.image}
          ports: [{containerPort: "${self.spec.port}"}]
`

const service = `
apiVersion: v1
kind: Service
metadata: {name: "${self.metadata.name}"}
spec:
  selector: {app: "${self.metadata.name}"}
  ports: [{port: "${self.spec.port}"}]
`

const ingress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: "${self.metadata.name}"}
spec:
  rules:
    - host: ${self.spec.host}
      http:
        paths:
          - path: /
            pathType: Prefix
            backend: {service: {name: "${self.metadata.name}", port: {number: "${self.spec.port}"}}}
`

const job = `
apiVersion: batch/v1
kind: Job
metadata: {name: "${self.metadata.name}"}
spec:
  template:
    spec:
      restartPolicy: OnFailure
      containers: [{name: main, image: "${self.spec.image}"}]
`

const cronJob = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: "${self.metadata.name}"}
spec:
  schedule: ${self.spec.schedule}
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: OnFailure
          containers: [{name: main, image: "${self.spec.image}"}]
`
