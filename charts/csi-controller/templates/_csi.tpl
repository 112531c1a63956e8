{{- define "csi.livenessprobe" -}}
{{- $probe := .Values.sidecars.livenessprobe }}
{{- include "library.mode" (dict "Values" .Values "mode" $probe.mode "image" $probe.image) }}
{{- end -}}

{{/* Address and port of plain HTTP; with builtin the probe requires them. */}}
{{- define "csi.httpEndpoint" -}}
{{- $probed := printf "127.0.0.1:%v" .Values.sidecars.livenessprobe.port }}
{{- $builtin := eq (include "csi.livenessprobe" .) "builtin" }}
{{- .Values.httpEndpoint | default (ternary $probed "" $builtin) }}
{{- end -}}

{{- define "csi.secret" -}}
{{ .Values.cloudConfig.secretName | default (include "library.program" .) | quote }}
{{- end -}}

{{/* Arguments of the sidecars that elect a leader. */}}
{{- define "csi.election" -}}
- --leader-election
- {{ printf "--leader-election-namespace=%s" .Release.Namespace | quote }}
- --leader-election-lease-duration=30s
- --leader-election-renew-deadline=20s
- --leader-election-retry-period=5s
- --kube-api-qps=100
- --kube-api-burst=200
{{- end -}}

{{/* Fields of every sidecar. */}}
{{- define "csi.rest" -}}
{{- with include "library.apiServer" . | trim }}
env:
  {{- . | nindent 2 }}
{{ end -}}
resources:
  requests:
    {{- if not .Values.verticalPodAutoscaler }}
    cpu: 10m
    memory: 25Mi
    {{- end }}
    ephemeral-storage: 60Mi
securityContext:
  {{- include "library.security" . | nindent 2 }}
volumeMounts:
  - name: socket
    mountPath: /csi
{{- end -}}

{{/*
Permissions, as the tests use them with OpenStack. With another cloud the names of the Leases
differ; where there are no zones, Nodes are not read.
*/}}
{{- define "csi.rbac" -}}
{{- $text := .Files.Get "files/rbac.yaml" | replace "namespace: kube-system" (printf "namespace: %s" (.Release.Namespace | quote)) }}
{{- $text = $text | replace "csi-controller" (include "library.program" .) }}
{{- $text = $text | replace "cinder-csi-openstack-org" (include "library.csiDriver" . | replace "." "-") }}
{{- if not (get (include "library.cloud" . | fromYaml) "hasZones") }}
{{- $text = $text | replace "[storageclasses, csinodes, volumeattachments]" "[storageclasses, volumeattachments]" }}
{{- $text = regexReplaceAll `  - apiGroups: \[""\]\n    resources: \[nodes\]\n    verbs: \[list, watch\]\n` $text "" }}
{{- end }}
{{- $text }}
{{- end -}}
