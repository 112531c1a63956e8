{{- define "osdpl.labels" -}}
app: osdpl-controller
app.kubernetes.io/name: osdpl-controller
app.kubernetes.io/part-of: mooring
{{- end -}}
