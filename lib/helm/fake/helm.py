"""The fake helm.

Like the real one: revisions as Secrets with helm's labels, pending while it runs,
superseded by the next one, history of three; a pending release refuses the next run;
an uninstallation deletes the workloads with the annotation of the release.
Unlike it: nothing of the chart is made; every chart renders to a ConfigMap with the
hash of its values, and a Secret with the values.
"""

import base64
import dataclasses
import hashlib
import json
import pathlib
import threading
from collections.abc import Callable, Mapping

import yaml

from lib.helm import archive, command, errors, model, releases
from lib.kube import objects, resources
from lib.kube.fake import api as kube
from lib.process import decoding

RELEASE = "meta.helm.sh/release-name"
"""Annotation of every object that helm has made."""
Hook = Callable[[str, str], None]
"""Called with a moment of a run ("begin", "pending", "end") and the release."""
Objects = Callable[[Mapping[str, object]], list[Mapping[str, object]]]
"""Returns the further objects of a chart by its values."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """Fault of the next run for a release.

    leaves: status of the revision it leaves; None: none is written.
    """

    release: str
    error: errors.HelmError
    leaves: model.Status | None = model.Status.FAILED


class FakeHelm(command.Helm):
    """Implements command.Helm over a FakeApi. Safe to use from several threads.

    runs: "upgrade NAME" and "uninstall NAME" of all runs so far. given: the last
    upgrade of each release. hooks: whether the deletion of each ran its hooks. hook:
    what it raises ends the run there, as a kill does. objects: by release, what its
    chart renders besides.
    """

    def __init__(self, api: kube.FakeApi) -> None:
        self.runs: list[str] = []
        self.upgrades: dict[str, model.Upgrade] = {}
        self.hooks: dict[str, bool] = {}
        self.faults: list[Fault] = []
        self.hook: Hook | None = None
        self.objects: dict[str, Objects] = {}
        self._api = api

    def check(self, cancel: threading.Event) -> str:
        """See `Helm.check`."""
        del cancel
        return "v4.3"

    def upgrade(self, run: model.Upgrade, cancel: threading.Event) -> None:
        """See `Helm.upgrade`."""
        self.runs.append(f"upgrade {run.release}")
        self.upgrades[run.release] = run
        self._moment("begin", run.release)
        if cancel.is_set():
            raise errors.Canceled(f"upgrade of {run.release}: canceled")
        last = self._latest(run.namespace, run.release)
        if last is not None and last.status.is_pending:
            raise errors.Busy("another operation is in progress")
        fault = next((f for f in self.faults if f.release == run.release), None)
        if fault is not None:
            self.faults.remove(fault)
        number = last.number + 1 if last is not None else 1
        if fault is not None and fault.leaves is None:
            raise fault.error
        first = last is None
        pending = (
            model.Status.PENDING_INSTALL if first else model.Status.PENDING_UPGRADE
        )
        self._write(run, number, pending)
        self._moment("pending", run.release)
        if fault is not None and fault.leaves is not None:
            self._write(run, number, fault.leaves, str(fault.error))
            raise fault.error
        self._write(run, number, model.Status.DEPLOYED, "Upgrade complete")
        self._supersede(run, number)
        self._moment("end", run.release)

    def uninstall(self, run: model.Uninstall, cancel: threading.Event) -> None:
        """See `Helm.uninstall`."""
        del cancel
        self.runs.append(f"uninstall {run.release}")
        self.hooks[run.release] = run.hooks
        self._moment("begin", run.release)
        for secret in self._secrets(run.namespace, run.release):
            self._api.remove(resources.SECRETS, secret.secret_name, run.namespace)
        for kind in (resources.DEPLOYMENTS, resources.STATEFUL_SETS):
            for item in self._api.all(kind):
                about = metadata_of(item)
                if about.annotations.get(RELEASE) == run.release:
                    self._api.remove(kind, about.name, run.namespace)
        self._moment("end", run.release)

    def template(self, run: model.Template, cancel: threading.Event) -> str:
        """See `Helm.template`."""
        del cancel
        return self._manifest(run.release, run.values)

    def _manifest(self, release: str, values: Mapping[str, object]) -> str:
        further = self.objects.get(release)
        others = further(values) if further is not None else []
        documents = (*_documents(release, values), *others)
        return "\n---\n".join(json.dumps(document, indent=1) for document in documents)

    def _moment(self, moment: str, release: str) -> None:
        if self.hook is not None:
            self.hook(moment, release)

    def _secrets(self, namespace: str, release: str) -> list[model.Revision]:
        kept = (metadata_of(secret) for secret in self._api.all(resources.SECRETS))
        revisions = (releases.revision(metadata) for metadata in kept)
        return [
            r for r in revisions if r and (r.namespace, r.name) == (namespace, release)
        ]

    def _latest(self, namespace: str, release: str) -> model.Revision | None:
        revisions = self._secrets(namespace, release)
        return max(revisions, key=lambda revision: revision.number, default=None)

    def _write(
        self, run: model.Upgrade, number: int, status: model.Status, words: str = ""
    ) -> None:
        content = {
            "name": run.release,
            "namespace": run.namespace,
            "version": number,
            "info": {"status": status.value, "description": words},
            # As helm does it: numbers are floats.
            "config": json.loads(json.dumps(run.values), parse_int=float),
            "chart": {"metadata": _metadata(run.chart)},
            "manifest": self._manifest(run.release, run.values),
        }
        packed = base64.b64encode(releases.encode(content)).decode()
        labels = {
            **run.labels,
            "owner": "helm",
            "name": run.release,
            "status": status.value,
            "version": str(number),
        }
        self._put(run.namespace, f"{run.release}.v{number}", labels, packed)

    def _put(
        self, namespace: str, suffix: str, labels: Mapping[str, str], packed: str
    ) -> None:
        self._api.put(
            resources.SECRETS,
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": releases.TYPE,
                "metadata": {
                    "name": f"{releases.PREFIX}{suffix}",
                    "namespace": namespace,
                    "labels": dict(labels),
                },
                "data": {"release": packed},
            },
        )

    def _supersede(self, run: model.Upgrade, number: int) -> None:
        """Set the older revisions to superseded, and keep only the last ones."""
        for old in self._secrets(run.namespace, run.release):
            if old.number <= number - command.HISTORY:
                self._api.remove(resources.SECRETS, old.secret_name, run.namespace)
            elif old.number < number and old.status is model.Status.DEPLOYED:
                document = next(
                    secret
                    for secret in self._api.all(resources.SECRETS)
                    if metadata_of(secret).name == old.secret_name
                )
                labels = {**metadata_of(document).labels, "status": "superseded"}
                data = document["data"]
                assert isinstance(data, dict)  # noqa: S101 # written above
                self._put(
                    run.namespace,
                    f"{run.release}.v{old.number}",
                    labels,
                    str(data["release"]),
                )


def metadata_of(document: Mapping[str, object]) -> objects.ObjectMeta:
    """Return the metadata of a document, decoded."""
    about = {"metadata": document["metadata"]}
    return decoding.decode(json.dumps(about), objects.Bare).metadata


def _metadata(chart: pathlib.Path) -> Mapping[str, object]:
    """Return the content of Chart.yaml; of a chart that does not exist its name."""
    if not chart.is_file():
        return {"name": chart.name, "version": "0"}
    content = archive.member(chart.read_bytes(), "Chart.yaml")
    parsed: Mapping[str, object] = yaml.safe_load(content or b"{}")
    return parsed


def _documents(
    release: str, values: Mapping[str, object]
) -> tuple[Mapping[str, object], ...]:
    text = json.dumps(values, sort_keys=True)
    hash = hashlib.sha256(text.encode()).hexdigest()
    return (
        {"kind": "ConfigMap", "metadata": {"name": release}, "data": {"hash": hash}},
        {"kind": "Secret", "metadata": {"name": release}, "data": {"values": text}},
    )
