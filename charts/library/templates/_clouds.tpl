{{/*
What differs between clouds, by the value `cloud`: no other template compares it.
credentials: cloudConfig (a Secret with cloud.conf), or parent (a kubeconfig of the parent cluster).
csiDriver: name of the CSI driver; nodePlugin: the reference's node plugin, which uses its socket.
dataSecret: Secret with the discovery data outside of Deckhouse.
defaultFsType: file system of StorageClasses without one.
hasClaimMetadata: the driver accepts the names of claims and pods.
hasInstanceTypes: the discoverer publishes instance types.
hasZones: volumes are in zones.
nodeIdentity: metadata (of the server), or name (of the Node).
suffix: what names of charts for several clouds get, so that a cluster can have Nodes of two clouds.
*/}}
{{- define "library.clouds" -}}
openstack:
  credentials: cloudConfig
  csiDriver: cinder.csi.openstack.org
  dataSecret: d8-cloud-provider-discovery-data
  defaultFsType: ext4
  hasClaimMetadata: true
  hasInstanceTypes: true
  hasZones: true
  nodeIdentity: metadata
  nodePlugin: cinder-csi-plugin
  suffix: ""
dvp:
  credentials: parent
  csiDriver: csi.dvp.deckhouse.io
  dataSecret: cloud-provider-dvp-discovery-data
  defaultFsType: ""
  hasClaimMetadata: false
  hasInstanceTypes: false
  hasZones: false
  nodeIdentity: name
  nodePlugin: dvp-csi-driver
  suffix: -dvp
{{- end -}}

{{/* The row of the value `cloud`, as YAML. */}}
{{- define "library.cloud" -}}
{{- index (include "library.clouds" . | fromYaml) .Values.cloud | toYaml }}
{{- end -}}
