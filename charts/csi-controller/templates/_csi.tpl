{{- define "csi.labels" -}}
app: csi-controller
heritage: deckhouse
module: cloud-provider-openstack
{{- end -}}

{{- define "csi.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "csi.image" -}}
{{ .image }}{{ if hasPrefix "sha256:" .version }}@{{ else }}:{{ end }}{{ .version }}
{{- end -}}

{{- define "csi.secret" -}}
{{ .Values.cloudConfig.secretName | default "csi-controller" }}
{{- end -}}

{{/* What the sidecars that elect a leader have in common. */}}
{{- define "csi.election" -}}
- --leader-election
- --leader-election-namespace={{ .Release.Namespace }}
- --leader-election-lease-duration=30s
- --leader-election-renew-deadline=20s
- --leader-election-retry-period=5s
- --kube-api-qps=100
- --kube-api-burst=200
{{- end -}}

{{/* Of every sidecar. */}}
{{- define "csi.rest" -}}
resources:
  requests:
    {{- if not .Values.verticalPodAutoscaler }}
    cpu: 10m
    memory: 25Mi
    {{- end }}
    ephemeral-storage: 60Mi
securityContext:
  {{- include "csi.security" . | nindent 2 }}
volumeMounts:
  - name: socket
    mountPath: /csi
{{- end -}}
