{{- define "csi.image" -}}
{{ printf "%s%s%s" .image (ternary "@" ":" (hasPrefix "sha256:" .version)) .version | quote }}
{{- end -}}

{{- define "csi.secret" -}}
{{ .Values.cloudConfig.secretName | default "csi-controller" | quote }}
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
