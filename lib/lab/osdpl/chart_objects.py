"""Templates of one of the lab's charts, generated from its contract. Pure.

Objects are JSON documents, which helm reads as YAML. A text "<<X>>" becomes the action
{{ X }} without quotes: its result is JSON.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from lib.lab.osdpl import chart_settings
from lib.lab.osdpl.contract import Chart, Job, Workload, WorkloadKind

Json = dict[str, object]

_RBAC = "rbac.authorization.k8s.io"
_ENTRYPOINT_RULES = [
    {
        "apiGroups": ["", "batch", "apps"],
        "resources": ["daemonsets", "jobs", "pods", "services", "endpoints", "secrets"],
        "verbs": ["get", "list"],
    }
]
_MORE_RULES: Mapping[str, Sequence[Json]] = {
    "mariadb-controller": [
        {
            "apiGroups": [""],
            "resources": ["services"],
            "verbs": ["update", "patch", "get", "list"],
        }
    ],
    "mariadb-server": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["mariadb-server-mariadb-state"],
            "verbs": ["get", "patch"],
        },
    ],
    **dict.fromkeys(
        ("keystone-fernet-setup", "keystone-credential-setup"),
        [
            {
                "apiGroups": [""],
                "resources": ["secrets"],
                "verbs": ["get", "list", "create", "update"],
            }
        ],
    ),
}
"""What else the Role of an account grants: the installing user must hold it."""
_DEFAULT = "-default"
"""End of the name of a DaemonSet whose values can be overridden on nodes."""
_NODE_RULES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}]


def templates(chart: Chart) -> str:
    """Return the template file of a chart."""
    documents = [_guarded("", _shared(chart))]
    for workload in chart.workloads:
        documents.append(_guarded(workload.flag, _workload(chart, workload)))
        if workload.name.endswith(_DEFAULT):
            documents.append(_on_nodes(chart, workload))
    for job in chart.jobs:
        documents.append(_guarded(job.flag, _job_objects(chart, job)))
    return "".join(documents)


def _guarded(flag: str, objects: Sequence[Json]) -> str:
    """Return documents, rendered only if a flag below `manifests` is set."""
    return _when(flag, _documents(objects))


def _documents(objects: Sequence[Json]) -> str:
    return "".join(f"---\n{_dump(document)}\n" for document in objects)


def _when(flag: str, text: str) -> str:
    if not flag:
        return text
    return f"{{{{- if .Values.manifests.{flag} }}}}\n{text}{{{{- end }}}}\n"


def _dump(document: Json) -> str:
    """Return JSON with its actions."""
    text = json.dumps(document, indent=1)
    return re.sub(r'"<<(.*?)>>"', _action, text)


def _action(match: re.Match[str]) -> str:
    inner = json.loads(f'"{match[1]}"')
    return f"{{{{ {inner} }}}}"


def _value(path: str, public: str = "") -> str:
    return f'<<include "lab.value" (list $ "{path}" "{public}")>>'


def _text(path: str, public: str = "") -> str:
    return f'<<include "lab.text" (list $ "{path}" "{public}")>>'


def _labels(chart: Chart, component: str) -> dict[str, str]:
    """Return the labels of pods, by which others find them."""
    return {
        "application": chart.name,
        "component": component,
        "release_group": "<<$.Values.release_group | default $.Release.Name | quote>>",
    }


def _object(
    kind: str, api_version: str, name: str, labels: Mapping[str, str], **parts: object
) -> Json:
    """Return one object."""
    metadata: Json = {"name": name, "labels": dict(labels)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def _shared(chart: Chart) -> list[Json]:
    """Return what a chart has once: its configuration, and a check of all images."""
    labels = _labels(chart, "etc")
    content = {path: _text(path) for path in sorted(set(chart.required))}
    for path, default in chart.public.items():
        content[path] = _text(path, default)
    conf = 'omit (.Values.conf | default dict) "overrides"'
    content["conf.json"] = f"<<{conf} | toJson | quote>>"
    content |= chart_settings.files(chart) | chart_settings.content(chart)
    images = {f"images.tags.{key}": _text(f"images.tags.{key}") for key in chart.images}
    replicas = {
        f"pod.replicas.{key}": _text(f"pod.replicas.{key}") for key in chart.replicas
    }
    sync = '<<required "manifests.job_image_repo_sync must be false" (ternary "" "off"'
    images["image-repo-sync"] = (
        f"{sync} .Values.manifests.job_image_repo_sync) | quote>>"
    )
    return [
        _object("Secret", "v1", f"{chart.name}-etc", labels, stringData=content),
        _object("ConfigMap", "v1", f"{chart.name}-bin", labels, data=images | replicas),
    ]


def _workload(chart: Chart, workload: Workload) -> list[Json]:
    """Return a controller of pods and all that belongs to it."""
    labels = _labels(chart, workload.component)
    objects = _account(workload.name, labels)
    spec: Json = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": _pod(chart, workload)},
    }
    if workload.kind is not WorkloadKind.DAEMON_SET:
        spec["replicas"] = _value(f"pod.replicas.{workload.replicas}")
    if workload.kind is WorkloadKind.STATEFUL_SET:
        spec["serviceName"] = workload.service
        spec["podManagementPolicy"] = "Parallel"
        if workload.claim:
            spec["volumeClaimTemplates"] = [_claim(workload.claim)]
    objects.append(
        _object(workload.kind.value, "apps/v1", workload.name, labels, spec=spec)
    )
    return [*objects, *_service(workload, labels), *_budget(workload, labels)]


def _on_nodes(chart: Chart, workload: Workload) -> str:
    """Return a further DaemonSet for each label of nodes with values of their own.

    Source: helm-toolkit 2026.1.0, templates/utils/_daemonset_overrides.tpl.
    """
    labels = _labels(chart, workload.component)
    name = "<<$row.name | quote>>"
    affinity = {"affinity": "<<$row.affinity | toJson>>"}
    pod = _pod(chart, workload) | _mounted(name) | affinity
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    content = {"conf.json": "<<$row.conf | toJson | quote>>"}
    objects = (
        _object("Secret", "v1", name, labels, stringData=content),
        _object("DaemonSet", "apps/v1", name, labels, spec=spec),
    )
    rows = f'include "lab.overrides" (list $ "{_overridden(chart, workload)}")'
    each = f"{{{{- range $row := {rows} | fromJsonArray }}}}\n"
    return _when(workload.flag, f"{each}{_documents(objects)}{{{{- end }}}}\n")


def _overridden(chart: Chart, workload: Workload) -> str:
    """Return the name of a DaemonSet in overrides."""
    name = workload.name.removeprefix(f"{chart.name}-").removesuffix(_DEFAULT)
    return f"{chart.name}_{name}"


def _mounted(secret: str) -> Json:
    """Return the configuration that a pod mounts."""
    return {"volumes": [{"name": "etc", "secret": {"secretName": secret}}]}


def _service(workload: Workload, labels: Mapping[str, str]) -> Iterator[Json]:
    if workload.service:
        ports = [{"name": "main", "port": workload.port}]
        spec: Json = {"selector": labels, "ports": ports}
        if workload.cluster_ip:
            path = workload.cluster_ip
            spec["clusterIP"] = path if path == "None" else _value(path)
        yield _object("Service", "v1", workload.service, labels, spec=spec)


def _budget(workload: Workload, labels: Mapping[str, str]) -> Iterator[Json]:
    if workload.budget:
        path = f"pod.lifecycle.disruption_budget.{workload.budget}.min_available"
        spec = {"minAvailable": _value(path), "selector": {"matchLabels": labels}}
        yield _object(
            "PodDisruptionBudget", "policy/v1", workload.name, labels, spec=spec
        )


def _claim(name: str) -> Json:
    requests = {"storage": _value("volume.size")}
    return {
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": requests},
            "storageClassName": _value("volume.class_name"),
        },
    }


def _pod(chart: Chart, workload: Workload) -> Json:
    """Return the pods of a workload: they wait, then run one container per image."""
    security = {"securityContext": {"privileged": True}}
    containers = [
        {"name": key.replace("_", "-"), **_image(key)} for key in workload.images
    ]
    if workload.is_privileged:
        containers[0] |= security
    pod: Json = {
        "serviceAccountName": workload.name,
        "nodeSelector": f'<<include "lab.selector" (list $ "{workload.label}")>>',
        "initContainers": [_init(workload.name)],
        "containers": containers,
        **dict.fromkeys(workload.host, True),
    }
    if workload.name.endswith(_DEFAULT):
        others = f'include "lab.other_nodes" (list $ "{_overridden(chart, workload)}")'
        pod |= {"affinity": f"<<{others}>>", **_mounted(f"{chart.name}-etc")}
    elif workload.kind is not WorkloadKind.DAEMON_SET:
        place = f'"{chart.name}" "{workload.component}"'
        pod["affinity"] = f'<<include "lab.affinity" (list $ {place})>>'
    return pod


def static_key(name: str) -> str:
    """Return the key of a workload or Job below dependencies.static."""
    return name.replace("{{ .Release.Name }}-", "")


def _image(key: str) -> Json:
    return {"image": _value(f"images.tags.{key}")}


def _init(key: str) -> Json:
    """Return the init container that waits for what values name under this key."""
    env = f'<<include "lab.dependencies" (list $ "{static_key(key)}")>>'
    return {"name": "init", **_image("dep_check"), "env": env}


def _account(name: str, labels: Mapping[str, str]) -> list[Json]:
    """Return a ServiceAccount with the rights of kubernetes-entrypoint."""
    role = f"{name}-entrypoint"
    subject = {"kind": "ServiceAccount", "name": name}
    subject["namespace"] = "{{ .Release.Namespace }}"
    reference = {"apiGroup": _RBAC, "kind": "Role", "name": role}
    binding = {"roleRef": reference, "subjects": [subject]}
    rules = [*_ENTRYPOINT_RULES, *_MORE_RULES.get(name, ())]
    return [
        _object("ServiceAccount", "v1", name, labels),
        _object("Role", f"{_RBAC}/v1", role, labels, rules=rules),
        _object("RoleBinding", f"{_RBAC}/v1", role, labels, **binding),
    ]


def _node_reader(name: str, labels: Mapping[str, str]) -> list[Json]:
    """Return the cluster-wide right to read Nodes."""
    subject = {"kind": "ServiceAccount", "name": name}
    subject["namespace"] = "{{ .Release.Namespace }}"
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name}
    binding = {"roleRef": reference, "subjects": [subject]}
    return [
        _object("ClusterRole", f"{_RBAC}/v1", name, labels, rules=_NODE_RULES),
        _object("ClusterRoleBinding", f"{_RBAC}/v1", name, labels, **binding),
    ]


def _job_objects(chart: Chart, job: Job) -> list[Json]:
    """Return a Job, or a CronJob, with its account."""
    component = static_key(job.name).removeprefix(f"{chart.name}-")
    labels = _labels(chart, component)
    objects = _account(job.name, labels)
    if job.is_cluster_wide:
        objects += _node_reader(job.name, labels)
    pod: Json = {
        "serviceAccountName": job.name,
        "restartPolicy": "OnFailure",
        "nodeSelector": f'<<include "lab.selector" (list $ "{_job_label(chart)}")>>',
        "initContainers": [_init(job.name)],
        "containers": chart_settings.job_containers(chart, job, _image(job.image)),
    }
    spec: Json = {
        "backoffLimit": 1000,
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    if job.schedule:
        cron = {"schedule": job.schedule, "jobTemplate": {"spec": spec}}
        cron["concurrencyPolicy"] = "Forbid"
        return [*objects, _object("CronJob", "batch/v1", job.name, labels, spec=cron)]
    document = _object("Job", "batch/v1", job.name, labels, spec=spec)
    if job.weight is not None:
        hook = {
            "helm.sh/hook": "post-install,post-upgrade",
            "helm.sh/hook-weight": str(job.weight),
            "helm.sh/hook-delete-policy": "before-hook-creation",
        }
        metadata = {"name": job.name, "labels": labels, "annotations": hook}
        document["metadata"] = metadata
    return [*objects, document]


def _job_label(chart: Chart) -> str:
    return "jobs" if "jobs" in chart.labels else "job"
