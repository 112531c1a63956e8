"""The helm program: one run per call, each bounded in time and output."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping
from typing import Protocol

from lib.helm import child, errors, model, outcome

LEAST = (3, 18)
BROKEN = frozenset({(3, 18, 0)})
"""It renders large numbers of values as floats. Source: helm 3.18.1, release notes."""
"""Source: labels on release Secrets and --labels of upgrade."""
SERVER_SIDE = (4, 0)
"""Source: helm 4 applies on the server and fails with a conflict where another program
has changed a field; helm 3 overwrites it (pkg/kube, client.go)."""
OVERWRITING = ("--server-side=true", "--force-conflicts")
HISTORY = 3
"""Revisions that are kept."""
VERSION_LIMIT_S = 20.0
MANIFESTS_MAX = 64 * 1024 * 1024
_PASSED_ON = (
    "PATH",
    "HOME",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "HTTPS_PROXY",
    "NO_PROXY",
    "https_proxy",
    "no_proxy",
)
"""Variables that helm gets: those with which it reaches the API server."""


class Helm(Protocol):
    """Everything that is asked of helm.

    Each method raises a HelmError and nothing else; it ends early once `cancel` is set.
    """

    def check(self, cancel: threading.Event) -> str:
        """Return the version; raise HelmMissing for one that is absent or too old."""
        ...

    def upgrade(self, run: model.Upgrade, cancel: threading.Event) -> None:
        """Install or upgrade a release; the hooks of the chart are awaited."""
        ...

    def uninstall(self, run: model.Uninstall, cancel: threading.Event) -> None:
        """Delete a release; one that does not exist is no error."""
        ...

    def template(self, run: model.Template, cancel: threading.Event) -> str:
        """Return the manifests that a chart renders to, hooks included."""
        ...


_VALUES = "values-"
"""Prefix of the files with values."""


@dataclasses.dataclass(frozen=True, slots=True)
class Command:
    """The real helm. Safe to use from several threads.

    program: name or path. home: folder for helm's own caches, of this process only.
    kubeconfig: None for the
    pod's service account. env: of this process; only a few variables are passed on.
    """

    program: str
    home: pathlib.Path
    kubeconfig: str | None
    env: Mapping[str, str] = dataclasses.field(repr=False)
    _versions: list[tuple[int, int]] = dataclasses.field(
        default_factory=list, init=False, repr=False, compare=False
    )
    """Of the program, once it has been asked for it."""

    def __post_init__(self) -> None:
        """Delete values that a killed process has left: they hold passwords."""
        for path in self.home.glob(f"{_VALUES}*.json"):
            path.unlink(missing_ok=True)

    def check(self, cancel: threading.Event) -> str:
        """See `Helm.check`."""
        arguments = ("version", "--template", "{{.Version}}")
        ended = self._run(arguments, child.Limits(VERSION_LIMIT_S), cancel)
        outcome.require(ended, "version", frozenset())
        text = ended.output.decode(errors="replace").strip()
        match_ = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", text)
        version = tuple(int(part or 0) for part in match_.groups()) if match_ else ()
        if version[:2] < LEAST or version in BROKEN:
            least = ".".join(map(str, LEAST))
            broken = ", ".join(".".join(map(str, bad)) for bad in sorted(BROKEN))
            raise errors.HelmMissing(
                f'helm version: invalid value "{text[:40]}": must be {least} or later,'
                f" not {broken}"
            )
        self._versions.append((version[0], version[1]))
        return text

    def upgrade(self, run: model.Upgrade, cancel: threading.Event) -> None:
        """See `Helm.upgrade`."""
        if not self._versions:
            self.check(cancel)
        is_server_side = self._versions[-1] >= SERVER_SIDE
        labels = ",".join(f"{key}={value}" for key, value in run.labels.items())
        with self._values(run.values) as values:
            arguments = (
                *("upgrade", run.release, str(run.chart), "--install"),
                *("--namespace", run.namespace, "--values", str(values)),
                *("--history-max", str(HISTORY), "--timeout", f"{run.timeout_s:.0f}s"),
                *(("--labels", labels) if labels else ()),
                *("--reset-values", "--skip-crds", "--hide-notes"),
                # What was changed manually is overwritten, as helm 3 does.
                *(OVERWRITING if is_server_side else ()),
            )
            ended = self._run(arguments, child.Limits(run.limit_s), cancel)
        outcome.require(ended, f"upgrade of {run.release}", run.secrets)

    def uninstall(self, run: model.Uninstall, cancel: threading.Event) -> None:
        """See `Helm.uninstall`."""
        arguments = (
            *("uninstall", run.release, "--namespace", run.namespace),
            *("--ignore-not-found", "--timeout", f"{run.timeout_s:.0f}s"),
            *(() if run.hooks else ("--no-hooks",)),
        )
        ended = self._run(arguments, child.Limits(run.limit_s), cancel)
        outcome.require(ended, f"uninstall of {run.release}", frozenset())

    def template(self, run: model.Template, cancel: threading.Event) -> str:
        """See `Helm.template`."""
        limits = child.Limits(run.limit_s, MANIFESTS_MAX)
        with self._values(run.values) as values:
            arguments = (
                *("template", run.release, str(run.chart)),
                *("--namespace", run.namespace, "--values", str(values)),
            )
            ended = self._run(arguments, limits, cancel)
        outcome.require(ended, f"rendering of {run.release}", run.secrets)
        if ended.cut:
            raise errors.Failed(
                f"rendering of {run.release}: more than {MANIFESTS_MAX} bytes"
            )
        return ended.output.decode(errors="replace")

    def _run(
        self, arguments: tuple[str, ...], limits: child.Limits, cancel: threading.Event
    ) -> child.Ended:
        cluster = ("--kubeconfig", self.kubeconfig) if self.kubeconfig else ()
        try:
            return child.run(
                (self.program, *arguments, *cluster), self._env(), limits, cancel
            )
        except OSError as error:
            raise errors.HelmMissing(
                f'helm program "{self.program}": {error.strerror}:'
                " must be an executable helm (--helm)"
            ) from error

    def _env(self) -> Mapping[str, str]:
        passed = {name: self.env[name] for name in _PASSED_ON if name in self.env}
        return {
            **passed,
            "HELM_CACHE_HOME": str(self.home / "cache"),
            "HELM_CONFIG_HOME": str(self.home / "config"),
            "HELM_DATA_HOME": str(self.home / "data"),
        }

    @contextlib.contextmanager
    def _values(self, values: Mapping[str, object]) -> Iterator[pathlib.Path]:
        """Write the values where only this user can read them."""
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(".json", _VALUES, self.home)
        except OSError as error:
            raise self._no_space(error) from error
        path = pathlib.Path(name)
        try:
            try:
                # mkstemp makes files of mode 0600. JSON is YAML: nothing needs quoting.
                with os.fdopen(descriptor, "w") as file:
                    json.dump(values, file)
            except OSError as error:
                raise self._no_space(error) from error
            yield path
        finally:
            path.unlink(missing_ok=True)

    def _no_space(self, error: OSError) -> errors.NoSpace:
        return errors.NoSpace(
            f"values in {self.home}: {error.strerror}: must be a folder"
            " (--chart-cache) that can be written to"
        )
