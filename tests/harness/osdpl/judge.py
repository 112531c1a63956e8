"""Judges the objects of all releases together, as a cluster would meet them. Pure.

Each rule yields what can't work once the releases are installed: an object that no
release creates, an image of another OpenStack, a wait that never ends, a pod that fits
no node.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping

from lib.lab.osdpl import nodes
from lib.osdpl.values import public_secrets
from tests.harness.osdpl import cloud_manifests, judge_accounts, judge_endpoints
from tests.harness.osdpl.cloud_manifests import CloudManifests, Manifest, Object, Pods
from tests.harness.osdpl.judge_findings import JudgeFinding

_OPENSTACK_TAG = re.compile(
    r":(?:stable-)?(20\d\d\.[12]|[a-z]+)(?=-ubuntu|-debian|$)", re.IGNORECASE
)
_OTHER_TAGS = frozenset({"latest", "v"})
_SOURCES = (("ConfigMap", "configMap", "name"), ("Secret", "secret", "secretName"))
"""Kind, field of a volume, and field with the name."""
_FAMILIES = {"DaemonSet": "DEPENDENCY_DAEMONSET", "Job": "DEPENDENCY_JOBS"}


def judge(
    cloud: CloudManifests,
    version: str,
    images: Mapping[str, Collection[str]],
    public: Collection[str],
) -> tuple[JudgeFinding, ...]:
    """Return the findings of all rules, sorted.

    version: of OpenStack, as images name it. images: those of each release's chart.
    public: secrets that the charts publish as defaults.
    """
    rules: tuple[Callable[[CloudManifests], Iterator[JudgeFinding]], ...] = (
        references,
        mounts,
        awaited,
        node_labels,
        judge_endpoints.services,
        judge_endpoints.ingresses,
        judge_accounts.passwords,
        judge_accounts.makers,
    )
    findings = {finding for rule in rules for finding in rule(cloud)}
    findings |= set(image_tags(cloud, version, images))
    findings |= set(default_credentials(cloud, public))
    return tuple(sorted(findings))


def references(cloud: CloudManifests) -> Iterator[JudgeFinding]:
    """Yield references to objects that no release makes."""
    for place, kind, name in _references(cloud):
        if (kind, name) not in cloud.by_name:
            yield JudgeFinding(
                "reference", place, f"{kind}/{name} is made by no release"
            )


def _references(cloud: CloudManifests) -> Iterator[tuple[str, str, str]]:
    for pods in cloud.pods:
        for kind, name in of_pods(pods.spec):
            yield _place(pods.owner), kind, name
    for entry in cloud.of_kind("RoleBinding", "ClusterRoleBinding"):
        role = entry.manifest["roleRef"]
        if not role["name"].startswith(("system:", "cluster-admin", "admin", "view")):
            yield _place(entry), role["kind"], role["name"]
        for subject in entry.manifest.get("subjects") or []:
            yield _place(entry), subject["kind"], subject["name"]
    for entry in cloud.of_kind("Ingress"):
        for tls in entry.spec.get("tls") or []:
            yield _place(entry), "Secret", tls["secretName"]


def of_pods(spec: Manifest) -> Iterator[tuple[str, str]]:
    """Return kind and name of what pods can't start without."""
    if spec.get("serviceAccountName", "default") != "default":
        yield "ServiceAccount", spec["serviceAccountName"]
    for pull in spec.get("imagePullSecrets") or []:
        yield "Secret", pull["name"]
    for volume in spec.get("volumes") or []:
        yield from _of_volume(volume)
    for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
        yield from _of_container(container)


def _of_volume(volume: Manifest) -> Iterator[tuple[str, str]]:
    sources = [volume, *((volume.get("projected") or {}).get("sources") or [])]
    for source in sources:
        for kind, field, key in _SOURCES:
            entry = source.get(field)
            if entry and not entry.get("optional"):
                yield kind, entry.get(key) or entry["name"]
    claim = volume.get("persistentVolumeClaim")
    if claim:
        yield "PersistentVolumeClaim", claim["claimName"]


def _of_container(container: Manifest) -> Iterator[tuple[str, str]]:
    rows = [
        *(row.get("valueFrom") or {} for row in container.get("env") or []),
        *(container.get("envFrom") or []),
    ]
    for row in rows:
        for kind, fields in (
            ("Secret", ("secretKeyRef", "secretRef")),
            ("ConfigMap", ("configMapKeyRef", "configMapRef")),
        ):
            for field in fields:
                if field in row and not row[field].get("optional"):
                    yield kind, row[field]["name"]


def mounts(cloud: CloudManifests) -> Iterator[JudgeFinding]:
    """Yield keys of Secrets and ConfigMaps that are mounted or read, and missing.

    An object without content is filled by a Job, so its keys aren't known.
    """
    for pods in cloud.pods:
        for kind, name, key in _keys(pods):
            entry = cloud.by_name.get((kind, name))
            content = cloud_manifests.texts(entry) if entry else {}
            if content and key not in content:
                text = f"{kind}/{name} has no key {key}"
                yield JudgeFinding("key", _place(pods.owner), text)


def _keys(pods: Pods) -> Iterator[tuple[str, str, str]]:
    volumes = {
        volume["name"]: (kind, source[name], source.get("items") or [])
        for volume in pods.spec.get("volumes") or []
        for kind, field, name in _SOURCES
        if (source := volume.get(field)) and not source.get("optional")
    }
    for kind, name, items in volumes.values():
        for item in items:
            yield kind, name, item["key"]
    for container in pods.containers:
        for mount in container.get("volumeMounts") or []:
            kind, name, items = volumes.get(mount["name"], ("", "", []))
            if kind and mount.get("subPath") and not items:
                yield kind, name, mount["subPath"]
        for row in container.get("env") or []:
            yield from _variable_keys(row.get("valueFrom") or {})


def _variable_keys(source: Manifest) -> Iterator[tuple[str, str, str]]:
    for kind, field in cloud_manifests.KEY_REFERENCES.items():
        if field in source and not source[field].get("optional"):
            yield kind, source[field]["name"], source[field]["key"]


def awaited(cloud: CloudManifests) -> Iterator[JudgeFinding]:
    """Yield each object that an init container awaits and no release creates.

    Source: kubernetes-entrypoint, README: variables DEPENDENCY_*.
    """
    for pods in cloud.pods:
        for container in pods.spec.get("initContainers") or []:
            env = cloud.env(container)
            for text in _awaited(cloud, pods, env):
                yield JudgeFinding("awaited", _place(pods.owner), text)


def _awaited(
    cloud: CloudManifests, pods: Pods, env: Mapping[str, str]
) -> Iterator[str]:
    for name in names(env, "DEPENDENCY_SERVICE"):
        service = cloud.by_name.get(("Service", name))
        if service is None:
            yield f"Service/{name} is made by no release"
        elif not cloud.selected(service.spec.get("selector") or {}):
            yield f"Service/{name} selects no pods"
    for kind, variable in _FAMILIES.items():
        for name in names(env, variable):
            if (kind, name) not in cloud.by_name:
                yield f"{kind}/{name} is made by no release"
    for row in cloud_manifests.json_list(env.get("DEPENDENCY_POD_JSON", "")):
        yield from _awaited_pods(cloud, pods, row)


def _awaited_pods(cloud: CloudManifests, pods: Pods, row: Manifest) -> Iterator[str]:
    partners = cloud.selected(row["labels"])
    if not partners:
        yield f"no pods have the labels {row['labels']}"
    elif row.get("requireSameNode"):
        alone = _nodes(pods) - set().union(*map(_nodes, partners))
        if alone:
            yield f"pods {row['labels']} are not on the nodes {sorted(alone)}"


def names(env: Mapping[str, str], variable: str) -> Iterator[str]:
    """Return the names that a variable lists, without their namespaces."""
    for entry in env.get(variable, "").split(","):
        if entry:
            yield entry.rpartition(":")[2]


def _nodes(pods: Pods) -> set[str]:
    """Return the nodes of the lab whose labels fit."""
    required = pods.spec.get("nodeSelector") or {}
    return {
        name
        for name, labels in nodes.NODES.items()
        if all(key in labels and value == "enabled" for key, value in required.items())
    }


def node_labels(cloud: CloudManifests) -> Iterator[JudgeFinding]:
    """Yield pods that fit no node of a cloud as the reference labels it."""
    for pods in cloud.pods:
        if not _nodes(pods):
            text = f"no node has the labels {pods.spec.get('nodeSelector')}"
            yield JudgeFinding("node labels", _place(pods.owner), text)
        elif not pods.spec.get("nodeSelector"):
            yield JudgeFinding("node labels", _place(pods.owner), "runs on any node")


def image_tags(
    cloud: CloudManifests, version: str, images: Mapping[str, Collection[str]]
) -> Iterator[JudgeFinding]:
    """Yield images of another version of OpenStack, or that the chart doesn't have."""
    for pods in cloud.pods:
        for container in pods.containers:
            image = container["image"]
            match = _OPENSTACK_TAG.search(image)
            tag = match[1] if match and match[1] not in _OTHER_TAGS else ""
            if tag and tag != version:
                text = f"{image} is not of {version}"
                yield JudgeFinding("image", _place(pods.owner), text)
            elif not tag and image not in images[pods.owner.release]:
                text = f"{image} is not one of the chart"
                yield JudgeFinding("image", _place(pods.owner), text)


def default_credentials(
    cloud: CloudManifests, public: Collection[str]
) -> Iterator[JudgeFinding]:
    """Yield secrets that the chart publishes, wherever programs read them."""
    # The token of etcd names a cluster; it gives no access.
    for entry, key, text in cloud.texts:
        as_secret = {
            "kind": "Secret",
            "metadata": {"name": entry.name},
            "stringData": {key: text},
        }
        for finding in public_secrets.find_texts([as_secret], public):
            if finding.field == "ETCD_INITIAL_CLUSTER_TOKEN":
                continue
            what = f"{finding.key}: {finding.field} is public"
            yield JudgeFinding("default credential", _place(entry), what)


def _place(entry: Object) -> str:
    return f"{entry.release} {entry}"
