{{- define "library.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Deckhouse taints hosts with a dedicated role, some of them with NoExecute. */}}
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
