{{- define "library.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .Chart.Name }}
  namespace: {{ .Release.Namespace | quote }}
  labels:
    {{- include "library.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      app: {{ .Chart.Name }}
{{- end -}}

{{/*
The policies of the containers are the chart's template "containerPolicies", the mode of
updates is its annotation mooring.io/update-mode.
*/}}
{{- define "library.autoscaler" -}}
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata:
  name: {{ .Chart.Name }}
  namespace: {{ .Release.Namespace | quote }}
  labels:
    {{- include "library.labels" . | nindent 4 }}
    {{- if .Values.deckhouse.enabled }}
    workload-resource-policy.deckhouse.io: master
    {{- end }}
spec:
  targetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ .Chart.Name }}
  updatePolicy:
    updateMode: {{ index .Chart.Annotations "mooring.io/update-mode" }}
  resourcePolicy:
    containerPolicies:
      {{- include "containerPolicies" . | trim | nindent 6 }}
{{- end -}}
