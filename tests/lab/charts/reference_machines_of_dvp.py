"""What both generations of Deckhouse's module for DVP leave of machines and settings.

Objects with a status are listed in STATUSES. Source: deckhouse modules/030-cloud-
provider-dvp, images/capdvp-controller-manager, capi and openapi; the contract of
Cluster API.
"""

from collections.abc import Mapping
from typing import Any

from lib.kube import resources
from lib.kube.resources import Resource
from lib.lab.dvp import workload_objects as workload

SPACE = "d8-cloud-instance-manager"
MODULE_CONFIGS = Resource(
    "deckhouse.io", "v1alpha1", "moduleconfigs", "ModuleConfig", False
)
OTHERS = (workload.CLUSTERS, workload.MACHINES, workload.DEPLOYMENTS)
"""Kinds of Cluster API."""
STATE = """
apiVersion: deckhouse.io/v1alpha1
kind: ModuleConfig
metadata: {name: cloud-provider-dvp}
spec:
  version: 2
  enabled: true
  settings:
    nodes:
      parameters: {layout: Standard, sshPublicKey: ssh-ed25519 AAAA, zones: [default]}
    provider: {parameters: {namespace: project, networkPolicy: Isolated}}
    storage: {parameters: {excludedStorageClasses: [slow.*]}}
---
apiVersion: v1
kind: Secret
metadata:
  name: d8-node-manager-cloud-provider-dvp
  namespace: kube-system
  labels:
    cloud-provider.deckhouse.io/registration: ""
    cloud-provider.deckhouse.io/name: dvp
stringData:
  type: dvp
  region: default
  zones: '["default"]'
  instanceClassKind: DVPInstanceClass
  instanceClassAPIVersion: v1alpha1
  machineClassKind: ""
  capiClusterKind: DeckhouseCluster
  capiClusterAPIVersion: infrastructure.cluster.x-k8s.io/v1alpha1
  capiClusterAPIGroup: infrastructure.cluster.x-k8s.io
  capiClusterName: dvp
  capiMachineTemplateKind: DeckhouseMachineTemplate
  capiMachineTemplateAPIVersion: infrastructure.cluster.x-k8s.io/v1alpha1
  capiMachineTemplateAPIGroup: infrastructure.cluster.x-k8s.io
  dvp: '{"additionalVMLabels":{"team":"shop"}}'
---
apiVersion: v1
kind: Secret
metadata: {name: d8-node-manager-cloud-provider-dvp-capi, namespace: kube-system}
stringData:
  template.yaml: 'version: v2'
  cluster.yaml: 'kind: DeckhouseCluster'
---
apiVersion: v1
kind: Secret
metadata: {name: d8-migration-resources, namespace: d8-cloud-provider-dvp}
stringData: {resources.yaml: 'kind: ModuleConfig'}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: cloud-controller-manager, namespace: kube-system}
spec: {holderIdentity: master-0_1, leaseDurationSeconds: 15}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: 70c82521.cluster.x-k8s.io, namespace: d8-cloud-provider-dvp}
spec: {holderIdentity: master-0_2, leaseDurationSeconds: 15}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: dvp, namespace: d8-cloud-instance-manager}
spec:
  infrastructureRef:
    {apiGroup: infrastructure.cluster.x-k8s.io, kind: DeckhouseCluster, name: dvp}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: DeckhouseCluster
metadata:
  name: dvp
  namespace: d8-cloud-instance-manager
  labels: {dvp.deckhouse.io/cluster-prefix: child}
spec: {controlPlaneEndpoint: {host: 10.0.0.1, port: 6443}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: child-worker, namespace: d8-cloud-instance-manager}
spec: {clusterName: dvp, replicas: 2}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: DeckhouseMachineTemplate
metadata:
  name: worker-5c1f5a2b
  namespace: d8-cloud-instance-manager
  labels: {node-group: worker}
  annotations:
    # As the two mistakes of the older formula make it.
    checksum/instance-class: 3b8f1c2d
    helm.sh/resource-policy: keep
spec: {template: {spec: SPEC}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: DeckhouseMachineTemplate
metadata:
  name: worker-5c1f5a2b-gen1
  namespace: d8-cloud-instance-manager
  labels: {node-group: worker}
  annotations:
    checksum/instance-class: 9d2e77aa
    helm.sh/resource-policy: keep
spec:
  template:
    metadata: {labels: {team: shop}}
    spec: SPEC
---
apiVersion: v1
kind: Secret
metadata: {name: bootstrap-worker, namespace: d8-cloud-instance-manager}
type: cluster.x-k8s.io/secret
stringData: {value: '#cloud-config'}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: worker-old, namespace: d8-cloud-instance-manager}
spec: {clusterName: dvp, providerID: 'dvp://worker-old'}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: DeckhouseMachine
metadata:
  name: worker-old
  namespace: d8-cloud-instance-manager
  finalizers: [deckhousemachine.infrastructure.cluster.x-k8s.io]
spec:
  {providerID: 'dvp://worker-old', vmClassName: generic, memory: 4Gi,
   cpu: {cores: 2, cpuFraction: 50%}, rootDiskSize: 20Gi,
   rootDiskStorageClass: replicated, bootloader: EFI,
   bootDiskImageRef: {kind: ClusterVirtualImage, name: ubuntu}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: worker-new, namespace: d8-cloud-instance-manager}
spec: {clusterName: dvp, providerID: 'dvp://worker-new'}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: DeckhouseMachine
metadata:
  name: worker-new
  namespace: d8-cloud-instance-manager
  finalizers: [deckhousemachine.infrastructure.cluster.x-k8s.io]
  annotations: {dvp.deckhouse.io/orphaned-vm: worker-before}
spec:
  {providerID: 'dvp://worker-new', vmClassName: generic, memory: 4Gi,
   cpu: {cores: 2, cpuFraction: 100%}, rootDiskSize: 20Gi,
   rootDiskStorageClass: replicated, bootloader: EFI,
   runPolicy: AlwaysOn, liveMigrationPolicy: PreferSafe,
   additionalDisks: [{size: 10Gi, storageClass: replicated}],
   bootDiskImageRef: {kind: ClusterVirtualImage, name: ubuntu}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
  storageClassName: replicated
  volumeName: pvc-2
---
apiVersion: v1
kind: PersistentVolume
metadata:
  name: pvc-2
  annotations: {pv.kubernetes.io/provisioned-by: csi.dvp.deckhouse.io}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: replicated
  persistentVolumeReclaimPolicy: Retain
  claimRef: {kind: PersistentVolumeClaim, namespace: default, name: data}
  csi:
    driver: csi.dvp.deckhouse.io
    volumeHandle: pvc-2
    fsType: ext4
    volumeAttributes:
      dvpStorageClass: replicated
      storage.kubernetes.io/csiProvisionerIdentity: 1-1-csi.dvp.deckhouse.io
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: csi-2, finalizers: [external-attacher/csi-dvp-deckhouse-io]}
spec:
  attacher: csi.dvp.deckhouse.io
  nodeName: worker-new
  source: {persistentVolumeName: pvc-2}
---
apiVersion: v1
kind: Service
metadata:
  name: local
  namespace: default
  finalizers: [service.kubernetes.io/load-balancer-cleanup]
  annotations: {network.deckhouse.io/load-balancer-class: public}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  ports: [{port: 80, name: web}]
  selector: {app: local}
""".replace(
    "SPEC",
    "{vmClassName: generic, memory: 4Gi, cpu: {cores: 2, cpuFraction: 100%},"
    " rootDiskSize: 20Gi, rootDiskStorageClass: replicated, bootloader: EFI,"
    " bootDiskImageRef: {kind: ClusterVirtualImage, name: ubuntu}}",
)
_ADDRESSES = [
    {"type": "Hostname", "address": "worker"},
    {"type": "InternalDNS", "address": "worker"},
    {"type": "InternalIP", "address": "10.0.0.2"},
    {"type": "ExternalIP", "address": "10.0.0.2"},
]
_READY = {
    "type": "VirtualMachineReady",
    "status": "True",
    "reason": "VMRunning",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
STATUSES: Mapping[tuple[Resource, str], Mapping[str, Any]] = {
    (workload.DVP_CLUSTERS, "dvp"): {
        "ready": True,
        "initialization": {
            "provisioned": True,
            "infrastructureProvisioned": True,
            "controlPlaneInitialized": True,
        },
    },
    (workload.DVP_MACHINES, "worker-old"): {
        "ready": True,
        "initialization": {
            "infrastructureProvisioned": True,
            "bootstrapDataSecretCreated": True,
        },
        "addresses": _ADDRESSES,
    },
    (workload.DVP_MACHINES, "worker-new"): {
        "ready": True,
        "initialization": {"provisioned": True},
        "addresses": _ADDRESSES,
        "conditions": [_READY],
    },
    (resources.SERVICES, "local"): {
        "loadBalancer": {"ingress": [{"ip": "192.0.2.7", "ipMode": "VIP"}]}
    },
}
"""Statuses of the older generation (worker-old) and the newer one."""
