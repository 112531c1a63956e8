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
