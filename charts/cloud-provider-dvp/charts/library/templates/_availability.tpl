{{- define "library.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "library.name" . }}
  namespace: {{ .Release.Namespace | quote }}
  labels:
    {{- include "library.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      app: {{ include "library.name" . }}
{{- end -}}

{{/*
The policies of the containers are the chart's template "NAME.containerPolicies", since charts
of an umbrella share the names of templates. The mode of updates is the chart's annotation
mooring.io/update-mode; its workload is a Deployment unless mooring.io/workload is set.
*/}}
{{- define "library.autoscaler" -}}
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata:
  name: {{ include "library.name" . }}
  namespace: {{ .Release.Namespace | quote }}
  labels:
    {{- include "library.labels" . | nindent 4 }}
    {{- if .Values.deckhouse.enabled }}
    workload-resource-policy.deckhouse.io: master
    {{- end }}
spec:
  targetRef:
    apiVersion: apps/v1
    kind: {{ index .Chart.Annotations "mooring.io/workload" | default "Deployment" }}
    name: {{ include "library.name" . }}
  updatePolicy:
    updateMode: {{ index .Chart.Annotations "mooring.io/update-mode" }}
  resourcePolicy:
    containerPolicies:
      {{- include (printf "%s.containerPolicies" .Chart.Name) . | trim | nindent 6 }}
{{- end -}}
