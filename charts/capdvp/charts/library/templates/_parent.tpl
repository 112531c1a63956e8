{{/*
Access to the parent cluster of DVP, by the values `parent` and `clusterUUID` of a chart. Empty
ones are keys of the Secret, as in that of the reference.
*/}}
{{- define "library.parentVariables" -}}
- name: DVP_NAMESPACE
  {{- if .Values.parent.namespace }}
  value: {{ .Values.parent.namespace | quote }}
  {{- else }}
  valueFrom:
    secretKeyRef:
      name: {{ .Values.parent.secretName | quote }}
      key: namespace
  {{- end }}
- name: CLUSTER_UUID
  {{- if .Values.clusterUUID }}
  value: {{ .Values.clusterUUID | quote }}
  {{- else }}
  valueFrom:
    secretKeyRef:
      name: {{ .Values.parent.secretName | quote }}
      key: clusterUUID
  {{- end }}
{{- end -}}

{{- define "library.parentMount" -}}
- name: parent
  mountPath: /etc/parent
  readOnly: true
{{- end -}}

{{- define "library.parentVolume" -}}
- name: parent
  secret:
    secretName: {{ .Values.parent.secretName | quote }}
{{- end -}}

{{/* UUID of the cluster: a value, or the key clusterUUID of a Secret; empty: not known. */}}
{{- define "library.clusterOf" -}}
{{- if .value }}
{{- .value }}
{{- else if .secret }}
{{- $live := lookup "v1" "Secret" .namespace .secret }}
{{- index ($live.data | default dict) "clusterUUID" | default "" | b64dec }}
{{- end }}
{{- end -}}

{{/* Fails if an upgrade changes the cluster UUID, by which VMs and disks are owned. */}}
{{- define "library.sameCluster" -}}
{{- $new := include "library.clusterOf" (dict "value" .Values.clusterUUID "secret" .Values.parent.secretName "namespace" .Release.Namespace) }}
{{- $live := lookup "apps/v1" "Deployment" .Release.Namespace (include "library.name" .) }}
{{- range $container := dig "spec" "template" "spec" "containers" list $live }}
{{- range $variable := $container.env }}
{{- if eq $variable.name "CLUSTER_UUID" }}
{{- $secret := dig "valueFrom" "secretKeyRef" "name" "" $variable }}
{{- $old := include "library.clusterOf" (dict "value" $variable.value "secret" $secret "namespace" $.Release.Namespace) }}
{{- if and $old $new (ne $old $new) }}
{{- fail (printf "clusterUUID: invalid value %q: must be %q, that of the installed release, which owns the VMs and disks in the parent" $new $old) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
