{{/*
Every template requires the context of the chart that uses it. Differences between charts are
annotations of Chart.yaml: mooring.io/module is Deckhouse's module; mooring.io/part-of is
optional.
*/}}
{{- define "library.module" -}}
{{ index .Chart.Annotations "mooring.io/module" }}
{{- end -}}

{{- define "library.labels" -}}
app: {{ .Chart.Name }}
app.kubernetes.io/name: {{ .Chart.Name }}
{{- with index .Chart.Annotations "mooring.io/part-of" }}
app.kubernetes.io/part-of: {{ . }}
{{- end }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- if .Values.deckhouse.enabled }}
heritage: deckhouse
module: {{ include "library.module" . }}
{{- end }}
{{- end -}}
