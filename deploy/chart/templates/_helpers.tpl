{{/* The names in the configuration, as JSON: {"names": [...]}. */}}
{{- define "handwerk.configured" -}}
{{- $names := list -}}
{{- range $file, $text := .Values.config -}}
{{- range regexSplit "(?m)^---.*$" $text -1 -}}
{{- $document := fromYaml . -}}
{{- if eq (get $document "kind" | toString) "Operator" -}}
{{- with dig "metadata" "name" "" $document -}}{{- $names = append $names . -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- dict "names" (uniq $names) | toJson -}}
{{- end }}

{{/* The operator's name. */}}
{{- define "handwerk.operator" -}}
{{- $configured := (include "handwerk.configured" . | fromJson).names -}}
{{- if and .Values.operator $configured (not (has .Values.operator $configured)) -}}
{{- fail (printf "operator is %s, but metadata.name in config is %s" .Values.operator (join ", " $configured)) -}}
{{- end -}}
{{- if and (not .Values.operator) (ne (len $configured) 1) -}}
{{- fail "operator: give the operator's name, which is metadata.name of its configuration" -}}
{{- end -}}
{{- .Values.operator | default (join "" $configured) | default "unnamed" -}}{{- /* helm lint goes on after fail */ -}}
{{- end }}

{{/* The name of the objects in the namespace of the release. Outside of it, where other releases have theirs, ":NAMESPACE" comes behind. */}}
{{- define "handwerk.name" -}}
handwerk-{{ include "handwerk.operator" . }}
{{- end }}

{{- define "handwerk.account" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "handwerk.name" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end }}

{{- define "handwerk.selector" -}}
app.kubernetes.io/name: handwerk
app.kubernetes.io/instance: {{ include "handwerk.operator" . | quote }}
{{- end }}

{{- define "handwerk.labels" -}}
{{ include "handwerk.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | regexFind "^[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "handwerk.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The ConfigMap with the configuration. Empty: there is none. */}}
{{- define "handwerk.configMap" -}}
{{- if and .Values.config .Values.existingConfigMap -}}
{{- fail "give config or existingConfigMap, not both" -}}
{{- end -}}
{{- if .Values.config -}}
{{ include "handwerk.name" . }}
{{- else -}}
{{ .Values.existingConfigMap }}
{{- end -}}
{{- end }}

{{/* What the Pods of the operator and of its cleanup have in common: where they run, and what they may. */}}
{{- define "handwerk.pod" -}}
securityContext:
  runAsNonRoot: true
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- if or (include "handwerk.configMap" .) .Values.volumes }}
volumes:
{{- with include "handwerk.configMap" . }}
  - name: config
{{- if contains "/" (keys $.Values.config | join "") }}
    configMap:
      name: {{ . | quote }}
      items: # a key cannot have a slash
{{- range $file, $text := $.Values.config }}
        - {key: {{ $file | replace "/" "-" | quote }}, path: {{ $file | quote }}}
{{- end }}
{{- else }}
    configMap: {name: {{ . | quote }}}
{{- end }}
{{- end }}
{{- with .Values.volumes }}
{{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* What their containers have in common. */}}
{{- define "handwerk.container" -}}
image: {{ include "handwerk.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
resources: {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
env:
  - name: POD_NAME
    valueFrom: {fieldRef: {fieldPath: metadata.name}}
  - name: POD_NAMESPACE
    valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
{{- with .Values.goMemoryLimit }}
  - {name: GOMEMLIMIT, value: {{ . | quote }}}
{{- end }}
{{- with .Values.env }}
{{- toYaml . | nindent 2 }}
{{- end }}
{{- if or (include "handwerk.configMap" .) .Values.volumeMounts }}
volumeMounts:
{{- if include "handwerk.configMap" . }}
  - {name: config, mountPath: /etc/handwerk, readOnly: true}
{{- end }}
{{- with .Values.volumeMounts }}
{{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Roles with their bindings. Takes root, rbac (clusterRules, rules, namespaces), the account, the suffix of names, and annotations
for the roles and for the bindings.
*/}}
{{- define "handwerk.roles" -}}
{{- $here := printf "%s%s" (include "handwerk.name" .root) .suffix -}}
{{- $outside := printf "%s:%s" $here .root.Release.Namespace -}}
{{- $roles := list -}}
{{- with .rbac.clusterRules -}}
{{- $roles = append $roles (dict "kind" "ClusterRole" "name" $outside "namespace" "" "rules" .) -}}
{{- end -}}
{{- with .rbac.rules -}}
{{- $roles = append $roles (dict "kind" "Role" "name" $here "namespace" $.root.Release.Namespace "rules" .) -}}
{{- end -}}
{{- range $namespace, $rules := .rbac.namespaces -}}
{{- $roles = append $roles (dict "kind" "Role" "name" $outside "namespace" $namespace "rules" $rules) -}}
{{- end -}}
{{- range $roles }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name | quote }}
{{- with .namespace }}
  namespace: {{ . | quote }}
{{- end }}
  labels: {{- include "handwerk.labels" $.root | nindent 4 }}
{{- with $.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
{{- end }}
rules: {{- toYaml .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ .name | quote }}
{{- with .namespace }}
  namespace: {{ . | quote }}
{{- end }}
  labels: {{- include "handwerk.labels" $.root | nindent 4 }}
{{- with $.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
{{- end }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: {{ .kind }}, name: {{ .name | quote }}}
subjects: [{kind: ServiceAccount, name: {{ $.account | quote }}, namespace: {{ $.root.Release.Namespace | quote }}}]
{{- end }}
{{- end }}
