{{- define "discoverer.secret" -}}
{{- $given := ternary dict .Values.openstack (ne .Values.cloudConfig.secretName "") -}}
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

{{- define "discoverer.proxyMode" -}}
{{- include "library.mode" (dict "Values" .Values "mode" .Values.metrics.mode "image" .Values.metrics.proxyImage) }}
{{- end -}}

{{- define "discoverer.priority" -}}
{{ .Values.priorityClassName | default (ternary "cluster-low" "" .Values.deckhouse.enabled) }}
{{- end -}}

