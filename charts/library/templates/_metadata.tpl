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

{{/* Job in metrics: the name of the chart; with the value `cloud` also the cloud's suffix. */}}
{{- define "library.job" -}}
{{- .Chart.Name }}
{{- if .Values.cloud }}
{{- get (include "library.cloud" . | fromYaml) "suffix" }}
{{- end }}
{{- end -}}

{{/*
Names of this chart: those of the job. Beside Deckhouse's objects also OpenStack is added, since
some of them have the names of charts.
*/}}
{{- define "library.program" -}}
{{- if and .Values.deckhouse.enabled .Values.cloud (not (include "library.hasDeckhouseNames" .)) }}
{{- printf "%s-%s" .Chart.Name .Values.cloud }}
{{- else }}
{{- include "library.job" . }}
{{- end }}
{{- end -}}

{{/* "true" if objects have the names of Deckhouse; empty otherwise. */}}
{{- define "library.hasDeckhouseNames" -}}
{{- if and .Values.deckhouse.enabled (dig "names" true .Values.deckhouse) }}true{{ end }}
{{- end -}}

{{/*
Name of the workload, of its objects in the namespace of the release, and label `app` of its pods.
With Deckhouse's names it is the annotation mooring.io/deckhouse-name, or the name of the chart:
the namespace is that of the cloud.
*/}}
{{- define "library.name" -}}
{{- if include "library.hasDeckhouseNames" . }}
{{- index .Chart.Annotations "mooring.io/deckhouse-name" | default .Chart.Name }}
{{- else }}
{{- include "library.program" . }}
{{- end }}
{{- end -}}

{{/* With Deckhouse's names, the annotation mooring.io/deckhouse-account where it is set. */}}
{{- define "library.serviceAccount" -}}
{{- $shared := index .Chart.Annotations "mooring.io/deckhouse-account" }}
{{- if and $shared (include "library.hasDeckhouseNames" .) }}
{{- $shared }}
{{- else }}
{{- include "library.name" . }}
{{- end }}
{{- end -}}

{{/*
Name of an object without a namespace: context, name. The component in it becomes
d8:MODULE:NAME with Deckhouse's names.
*/}}
{{- define "library.clusterName" -}}
{{- if include "library.hasDeckhouseNames" .context }}
{{- $part := index .context.Chart.Annotations "mooring.io/deckhouse-role" | default (include "library.name" .context) }}
{{- $prefix := printf "d8:%s:%s" (include "library.module" .context) $part }}
{{- .name | replace (include "library.program" .context) $prefix }}
{{- else }}
{{- .name }}
{{- end }}
{{- end -}}

{{/* Name of the CSI driver of the value `cloud`. */}}
{{- define "library.csiDriver" -}}
{{- get (include "library.cloud" . | fromYaml) "csiDriver" }}
{{- end -}}

{{- define "library.labels" -}}
app: {{ include "library.name" . }}
{{- /* The component: mooring finds it by this label, whatever the names are. */}}
app.kubernetes.io/name: {{ include "library.job" . }}
{{- with index .Chart.Annotations "mooring.io/part-of" }}
app.kubernetes.io/part-of: {{ . }}
{{- end }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- if .Values.deckhouse.enabled }}
heritage: deckhouse
module: {{ include "library.module" . }}
{{- end }}
{{- end -}}
