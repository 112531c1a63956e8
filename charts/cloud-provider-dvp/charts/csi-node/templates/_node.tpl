{{- define "csi-node.registrar" -}}
{{- include "library.mode" (dict "Values" .Values "mode" .Values.registrar.mode "image" .Values.registrar.image) }}
{{- end -}}

{{- define "csi-node.livenessprobe" -}}
{{- include "library.mode" (dict "Values" .Values "mode" .Values.livenessprobe.mode "image" .Values.livenessprobe.image) }}
{{- end -}}

{{/* The image of a sidecar: values, name of the program. */}}
{{- define "csi-node.image" -}}
{{- $image := .sidecar.image | default (printf "registry.k8s.io/sig-storage/%s" .program) }}
{{- $sidecar := dict "image" $image "version" .sidecar.version }}
{{- include "library.sidecarImage" (dict "Values" .Values "sidecar" $sidecar) }}
{{- end -}}

{{- define "csi-node.requests" -}}
requests:
  {{- if not .Values.verticalPodAutoscaler }}
  cpu: 12m
  memory: {{ .memory }}
  {{- end }}
  ephemeral-storage: 25Mi
{{- end -}}
