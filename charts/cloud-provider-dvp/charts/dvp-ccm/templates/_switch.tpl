{{/* Namespace and name of the ConfigMap that disables load balancers. */}}
{{- define "dvp-ccm.disablingConfigMap" -}}
{{ .Release.Namespace }}/dvp-cloud-controller-manager-disable-lb
{{- end -}}
