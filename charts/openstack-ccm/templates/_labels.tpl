{{- define "ccm.labels" -}}
app: openstack-ccm
heritage: deckhouse
module: cloud-provider-openstack
{{- end -}}
