"""What Deckhouse's module for DVP leaves in a child, with its workloads stopped.

Of both generations. Source: deckhouse modules/030-cloud-provider-dvp: names, keys and
labels of its objects.
"""

HOME = "d8-cloud-provider-dvp"
_LABELS = "{heritage: deckhouse, module: cloud-provider-dvp, app: %s}"
APPS = (
    "cloud-controller-manager",
    "capdvp-controller-manager",
    "csi-controller",
    "csi-node",
    "cloud-data-discoverer",
)
_WORKLOAD = """
apiVersion: apps/v1
kind: {kind}
metadata: {{name: {app}, namespace: {home}, labels: {labels}}}
spec:
  {stopped}
  selector: {{matchLabels: {{app: {app}}}}}
  template:
    metadata: {{labels: {{app: {app}}}}}
    spec:
      {selector}
      containers:
        - name: {app}
          image: registry.example/{app}@sha256:{digest}
          env:
            - name: DVP_KUBERNETES_CONFIG_BASE64
              valueFrom:
                secretKeyRef: {{name: {secret}, key: kubernetesConfigBase64}}
"""
STATE = """\
apiVersion: v1
kind: Secret
metadata:
  name: dvp-credentials
  namespace: d8-cloud-provider-dvp
  labels:
    heritage: deckhouse
    module: cloud-provider-dvp
stringData:
  kubernetesConfigBase64: |
    apiVersion: v1
    kind: Config
    current-context: project
    contexts: [{name: project, context: {cluster: parent, user: child}}]
    clusters: [{name: parent, cluster: {server: "https://parent.example:6443"}}]
    users: [{name: child, user: {token: example-of-a-token}}]
  namespace: project
  clusterUUID: f49dd1c3-a63a-4565-a06c-625e35587eab
---
apiVersion: v1
kind: Secret
metadata:
  name: dvp-credentials-capdvp
  namespace: d8-cloud-provider-dvp
  labels:
    heritage: deckhouse
    module: cloud-provider-dvp
stringData:
  kubernetesConfigBase64: |
    apiVersion: v1
    kind: Config
    current-context: project
    contexts: [{name: project, context: {cluster: parent, user: capdvp}}]
    clusters: [{name: parent, cluster: {server: "https://parent.example:6443"}}]
    users: [{name: capdvp, user: {token: example-of-another-token}}]
  namespace: project
  clusterUUID: f49dd1c3-a63a-4565-a06c-625e35587eab
---
apiVersion: v1
kind: Secret
metadata:
  name: d8-credentials
  namespace: d8-cloud-provider-dvp
type: cloud-provider.deckhouse.io/credentials
stringData:
  authScheme: kubeconfig
  secret: YXBpVmVyc2lvbjogdjE=
---
apiVersion: v1
kind: Secret
metadata:
  name: d8-provider-cluster-configuration
  namespace: kube-system
stringData:
  cloud-provider-cluster-configuration.yaml: |
    apiVersion: deckhouse.io/v1
    kind: DVPClusterConfiguration
    layout: Standard
    sshPublicKey: ssh-ed25519 AAAA
    provider: {kubeconfigDataBase64: YXBpVmVyc2lvbjogdjE=, namespace: project}
  cloud-provider-discovery-data.json: '{"zones":["default"]}'
---
apiVersion: v1
kind: Secret
metadata:
  name: d8-cloud-provider-discovery-data
  namespace: kube-system
stringData:
  discovery-data.json: |
    {"apiVersion":"deckhouse.io/v1","kind":"DVPCloudDiscoveryData","layout":"Standard",
     "zones":["default"],"storageClasses":[{"name":"replicated","isDefault":true,
     "volumeBindingMode":"WaitForFirstConsumer","isEnabled":true}]}
---
apiVersion: v1
kind: Secret
metadata:
  name: d8-node-manager-cloud-provider
  namespace: kube-system
stringData:
  type: dvp
  region: default
  zones: '["default"]'
  instanceClassKind: DVPInstanceClass
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: dvp-cloud-controller-manager-disable-lb
  namespace: d8-cloud-provider-dvp
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: csi
  namespace: d8-cloud-provider-dvp
  labels:
    heritage: deckhouse
    module: cloud-provider-dvp
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata:
  name: csi.dvp.deckhouse.io
  labels:
    heritage: deckhouse
    module: cloud-provider-dvp
spec:
  attachRequired: true
  podInfoOnMount: false
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: replicated
  labels:
    heritage: deckhouse
    module: cloud-provider-dvp
provisioner: csi.dvp.deckhouse.io
volumeBindingMode: WaitForFirstConsumer
allowVolumeExpansion: true
parameters:
  dvpStorageClass: replicated
---
apiVersion: v1
kind: PersistentVolume
metadata:
  name: pvc-1
spec:
  capacity:
    storage: 1Gi
  accessModes:
  - ReadWriteOnce
  storageClassName: replicated
  persistentVolumeReclaimPolicy: Retain
  csi:
    driver: csi.dvp.deckhouse.io
    volumeHandle: pvc-1
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: default
spec:
  type: LoadBalancer
  ports:
  - port: 80
  selector:
    app: web
---
apiVersion: deckhouse.io/v1alpha1
kind: DVPInstanceClass
metadata:
  name: worker
spec:
  virtualMachine:
    virtualMachineClassName: generic
    cpu:
      cores: 2
    memory:
      size: 4Gi
  rootDisk:
    size: 20Gi
    image:
      kind: ClusterVirtualImage
      name: ubuntu
"""


def workloads(*, is_stopped: bool = True) -> str:
    """Return the manifests of the workloads.

    is_stopped: as the documented steps stop them.
    """
    return "---".join(_workload(app, is_stopped=is_stopped) for app in APPS)


def _workload(app: str, *, is_stopped: bool) -> str:
    is_node = app == "csi-node"
    selector = is_node and is_stopped
    suffix = "-capdvp" if app.startswith("capdvp") else ""
    return _WORKLOAD.format(
        kind="DaemonSet" if is_node else "Deployment",
        app=app,
        home=HOME,
        labels=_LABELS % app,
        stopped="minReadySeconds: 0" if is_node else f"replicas: {int(not is_stopped)}",
        selector='nodeSelector: {mooring.io/stopped: "true"}' if selector else "",
        digest="0" * 64,
        secret=f"dvp-credentials{suffix}",
    )
