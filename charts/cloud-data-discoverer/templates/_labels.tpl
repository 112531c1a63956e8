{{- define "discoverer.labels" -}}
app: cloud-data-discoverer
heritage: deckhouse
module: cloud-provider-openstack
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
