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

{{- define "discoverer.dataSecret" -}}
{{- $plain := get (include "library.cloud" . | fromYaml) "dataSecret" }}
{{- .Values.discoverySecret | default (ternary "d8-cloud-provider-discovery-data" $plain .Values.deckhouse.enabled) }}
{{- end -}}

{{/*
A file with permissions, for the names of the cloud and of the release. Not each cloud has
instance types to publish.
*/}}
{{- define "discoverer.rbac" -}}
{{- $context := .context }}
{{- $text := $context.Files.Get .file | replace "d8-cloud-provider-openstack" ($context.Release.Namespace | quote) }}
{{- if not (get (include "library.cloud" $context | fromYaml) "hasInstanceTypes") }}
{{- $text = regexReplaceAll `(?s)  # The catalog that.*?(  # To compare)` $text "${1}" }}
{{- end }}
{{- /* Readers of /metrics are allowed by the name of the Deployment. */}}
{{- $name := ternary "library.name" "library.program" (contains "metrics-reader" .file) }}
{{- $text = $text | replace "cloud-data-discoverer" (include $name $context) }}
{{- $text = $text | replace "d8-cloud-provider-discovery-data" (include "discoverer.dataSecret" $context) }}
{{- include "library.permissions" (dict "context" $context "text" $text) }}
{{- end -}}

