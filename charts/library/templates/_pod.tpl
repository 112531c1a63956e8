{{- define "library.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Hosts of a dedicated role are tainted so in Deckhouse, some with NoExecute. */}}
{{- define "library.tolerations" -}}
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
