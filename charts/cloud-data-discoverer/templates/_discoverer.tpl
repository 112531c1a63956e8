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

{{- define "discoverer.priority" -}}
{{ .Values.priorityClassName | default (ternary "cluster-low" "" .Values.deckhouse.enabled) }}
{{- end -}}

