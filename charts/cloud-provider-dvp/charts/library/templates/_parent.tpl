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

{{/* Fails if an upgrade changes the cluster UUID, by which VMs and disks are owned. */}}
{{- define "library.sameCluster" -}}
{{- $live := lookup "apps/v1" "Deployment" .Release.Namespace (include "library.name" .) }}
{{- range $container := dig "spec" "template" "spec" "containers" list $live }}
{{- range $variable := $container.env }}
{{- if and (eq $variable.name "CLUSTER_UUID") $variable.value $.Values.clusterUUID }}
{{- if ne $variable.value $.Values.clusterUUID }}
{{- fail (printf "clusterUUID: invalid value %q: must be %q, that of the installed release, which owns the VMs and disks in the parent" $.Values.clusterUUID $variable.value) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
