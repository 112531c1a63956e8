{{- define "library.podMonitor" -}}
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: {{ include "library.name" . }}-metrics
  namespace: {{ ternary "d8-monitoring" .Release.Namespace .Values.deckhouse.enabled | quote }}
  labels:
    {{- include "library.labels" . | nindent 4 }}
    {{- if .Values.deckhouse.enabled }}
    prometheus: main
    {{- end }}
    {{- with .Values.metrics.podMonitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  podMetricsEndpoints:
    - port: https-metrics
      path: /metrics
      scheme: https
      bearerTokenSecret:
        name: {{ ternary "prometheus-token" .Values.metrics.tokenSecret.name .Values.deckhouse.enabled | quote }}
        key: {{ ternary "token" .Values.metrics.tokenSecret.key .Values.deckhouse.enabled | quote }}
      tlsConfig:
        insecureSkipVerify: true
      honorLabels: true
      scrapeTimeout: 25s
      relabelings:
        - regex: endpoint|pod|container
          action: labeldrop
        - targetLabel: job
          replacement: {{ include "library.job" . }}
        - sourceLabels: [__meta_kubernetes_pod_node_name]
          targetLabel: node
        - targetLabel: tier
          replacement: cluster
        - sourceLabels: [__meta_kubernetes_pod_ready]
          regex: "true"
          action: keep
  selector:
    matchLabels:
      app: {{ include "library.name" . }}
  namespaceSelector:
    matchNames: [{{ .Release.Namespace | quote }}]
{{- end -}}

{{/* Subjects with access to /metrics, for a binding. */}}
{{- define "library.metricsReaders" -}}
{{- if .Values.deckhouse.enabled -}}
- kind: User
  apiGroup: rbac.authorization.k8s.io
  name: d8-monitoring:scraper
- kind: ServiceAccount
  name: prometheus
  namespace: d8-monitoring
{{- else -}}
- kind: ServiceAccount
  name: {{ .Values.metrics.reader.name | quote }}
  namespace: {{ .Values.metrics.reader.namespace | quote }}
{{- end }}
{{- end -}}

{{/* The permission to read /metrics of a program with its own HTTPS, for Prometheus. */}}
{{- define "library.metricsPermission" -}}
{{- $name := include "library.clusterName" (dict "context" . "name" (printf "%s:metrics" (include "library.program" .))) -}}
# The permission to read /metrics, for Prometheus.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels:
    {{- include "library.labels" . | nindent 4 }}
rules:
  - nonResourceURLs: [/metrics]
    verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "library.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  {{- include "library.metricsReaders" . | nindent 2 }}
{{- end -}}

{{/*
The annotation mooring.io/rule-labels is "podMonitor" where the rules have the labels of
the PodMonitor outside of Deckhouse.
*/}}
{{- define "library.prometheusRule" -}}
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: {{ include "library.name" . }}
  namespace: {{ .Release.Namespace | quote }}
  labels:
    {{- include "library.labels" . | nindent 4 }}
    {{- if and (not .Values.deckhouse.enabled) (index .Chart.Annotations "mooring.io/rule-labels") }}
    {{- with .Values.metrics.podMonitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- end }}
spec:
{{ include "library.alerts" . | trim | indent 2 }}
{{- end -}}

{{/*
Labels of alerts: those of Deckhouse with deckhouse.enabled, otherwise severity. With another
cloud than OpenStack, its names, and only series of its own job.
*/}}
{{- define "library.alerts" -}}
{{- $text := .Files.Get "files/alerts.yaml" | trim }}
{{- $name := include "library.job" . }}
{{- if ne $name .Chart.Name }}
{{- $text = regexReplaceAll `\b((?:cloud|mooring)(?:_[a-z]+)+)\)` $text (printf `${1}{job="%s"})` $name) }}
{{- $text = replace "cloud-provider-openstack" (include "library.module" .) $text }}
{{- $text = replace (printf "d8_component: %s" .Chart.Name) (printf "d8_component: %s" $name) $text }}
{{- $text = replace "D8Openstack" (printf "D8%s" (title .Values.cloud)) $text }}
{{- end }}
{{- if not .Values.deckhouse.enabled }}
{{- $text = regexReplaceAll `severity_level: "[1-4]"` $text "severity: critical" }}
{{- $text = regexReplaceAll `severity_level: "[5-9]"` $text "severity: warning" }}
{{- $text = regexReplaceAll `(?m)^ *d8_(module|component): .*\n` $text "" }}
{{- $text = replace (printf "name: d8.%s." (include "library.module" .)) "name: " $text }}
{{- end }}
{{ $text }}
{{- end -}}

{{/* With another cloud than OpenStack, its job, and the metrics that all clouds have. */}}
{{- define "library.dashboardText" -}}
{{- $text := .Files.Get "files/dashboard.json" }}
{{- $name := include "library.job" . }}
{{- if ne $name .Chart.Name }}
{{- $text = $text | replace .Chart.Name $name }}
{{- $text = regexReplaceAll `openstack_api_request_errors_total\{(.*?)\}` $text `mooring_cloud_requests_total{${1}, outcome!=\"ok\"}` }}
{{- $text = $text | replace "openstack_api_requests_total" "mooring_cloud_requests_total" }}
{{- $text = $text | replace "by (request)" "by (operation)" | replace "{{request}}" "{{operation}}" }}
{{- end }}
{{- $text }}
{{- end -}}

{{/* The chart's files/dashboard.json, for Grafana. */}}
{{- define "library.dashboard" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "library.name" . }}-dashboard
  namespace: {{ .Release.Namespace | quote }}
  labels:
    {{- include "library.labels" . | nindent 4 }}
    grafana_dashboard: "1"
data:
  {{ include "library.job" . }}.json: |
    {{- include "library.dashboardText" . | nindent 4 }}
{{- end -}}
