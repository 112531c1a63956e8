{{- define "discoverer.labels" -}}
app: cloud-data-discoverer
app.kubernetes.io/name: cloud-data-discoverer
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- if .Values.deckhouse.enabled }}
heritage: deckhouse
module: cloud-provider-openstack
{{- end }}
{{- end -}}

{{- define "discoverer.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "discoverer.secret" -}}
{{- $given := .Values.openstack -}}
{{- range $key := list "authURL" "region" "domainName" "tenantID" "tenantName" "username" "password" "applicationCredentialID" "applicationCredentialSecret" }}
{{- with index $given $key }}
{{ $key }}: {{ . | b64enc }}
{{- end }}
{{- end }}
{{- with $given.caCert }}
ca.crt: {{ . | b64enc }}
{{- end }}
moduleConfig: {{ .Values.moduleConfig | toJson | b64enc }}
{{- end -}}

{{/* Hosts of a dedicated role are tainted so in Deckhouse, some with NoExecute. */}}
{{- define "discoverer.tolerations" -}}
{{- with .Values.tolerations }}
{{ toYaml . }}
{{- end }}
{{- if .Values.deckhouse.enabled }}
- key: dedicated.deckhouse.io
  operator: Exists
- key: dedicated
  operator: Exists
{{- end }}
{{- end -}}

{{- define "discoverer.priority" -}}
{{ .Values.priorityClassName | default (ternary "cluster-low" "" .Values.deckhouse.enabled) }}
{{- end -}}

{{/* Deckhouse's labels of alerts become the usual one elsewhere. */}}
{{- define "discoverer.alerts" -}}
{{- $text := .Files.Get "files/alerts.yaml" | trim }}
{{- if not .Values.deckhouse.enabled }}
{{- $text = regexReplaceAll `severity_level: "[1-4]"` $text "severity: critical" }}
{{- $text = regexReplaceAll `severity_level: "[5-9]"` $text "severity: warning" }}
{{- $text = regexReplaceAll `(?m)^ *d8_(module|component): .*\n` $text "" }}
{{- $text = replace "name: d8.cloud-provider-openstack." "name: " $text }}
{{- end }}
{{ $text }}
{{- end -}}
