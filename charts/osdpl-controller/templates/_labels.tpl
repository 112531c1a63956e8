{{- define "osdpl.labels" -}}
app: osdpl-controller
app.kubernetes.io/name: osdpl-controller
app.kubernetes.io/part-of: mooring
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- if .Values.deckhouse.enabled }}
heritage: deckhouse
module: openstack
{{- end }}
{{- end -}}

{{/* Hosts of a dedicated role are tainted so in Deckhouse, some with NoExecute. */}}
{{- define "osdpl.tolerations" -}}
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

{{/* Deckhouse's labels of alerts become the usual one elsewhere. */}}
{{- define "osdpl.alerts" -}}
{{- $text := .Files.Get "files/alerts.yaml" | trim }}
{{- if not .Values.deckhouse.enabled }}
{{- $text = regexReplaceAll `severity_level: "[1-4]"` $text "severity: critical" }}
{{- $text = regexReplaceAll `severity_level: "[5-9]"` $text "severity: warning" }}
{{- $text = regexReplaceAll `(?m)^ *d8_(module|component): .*\n` $text "" }}
{{- $text = replace "name: d8.openstack." "name: " $text }}
{{- end }}
{{ $text }}
{{- end -}}
