{{/*
Every template requires the context of the chart that uses it. Differences between charts are
annotations of Chart.yaml: mooring.io/module is Deckhouse's module; mooring.io/part-of is
optional.
*/}}
{{- define "library.module" -}}
{{- if hasKey .Values "cloud" }}
{{- printf "cloud-provider-%s" .Values.cloud }}
{{- else }}
{{- index .Chart.Annotations "mooring.io/module" }}
{{- end }}
{{- end -}}

{{/*
Name of the workload and of its objects: that of the chart. A chart with the value `cloud`
adds each cloud but OpenStack, so that a cluster can have Nodes of two clouds.
*/}}
{{- define "library.name" -}}
{{- $cloud := .Values.cloud | default "openstack" }}
{{- ternary .Chart.Name (printf "%s-%s" .Chart.Name $cloud) (eq $cloud "openstack") }}
{{- end -}}

{{/* Name of the CSI driver of the value `cloud`. */}}
{{- define "library.csiDriver" -}}
{{- get (dict "openstack" "cinder.csi.openstack.org" "dvp" "csi.dvp.deckhouse.io") .Values.cloud }}
{{- end -}}

{{- define "library.labels" -}}
app: {{ include "library.name" . }}
app.kubernetes.io/name: {{ include "library.name" . }}
{{- with index .Chart.Annotations "mooring.io/part-of" }}
app.kubernetes.io/part-of: {{ . }}
{{- end }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- if .Values.deckhouse.enabled }}
heritage: deckhouse
module: {{ include "library.module" . }}
{{- end }}
{{- end -}}
