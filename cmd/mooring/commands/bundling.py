"""`mooring doctor --bundle FILE`: one archive for a report of a fault."""

import pathlib
from typing import TYPE_CHECKING

import click

from mooring.commands import (
    daemon,
    findings,
    plan,
    plan_services,
    program,
    reach,
    version,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lib.doctor import model

option = click.option(
    "--bundle",
    type=click.Path(dir_okay=False, path_type=pathlib.Path),
    metavar="FILE",
    help="Also write versions, redacted configuration, Events, plans and logs of Pods"
    " to this tar.gz.",
)


def write(
    file: pathlib.Path,
    target: reach.Target,
    results: "Sequence[model.CheckResult]",
    timeout_s: float,
) -> None:
    """Write the archive; what cannot be read is a sentence in its file.

    Raises:
        ConfigError: the file exists, or cannot be written.
    """
    from lib.doctor import bundle

    secrets: set[str] = set()

    def configuration() -> str:
        title, content = target.configuration()
        redacted = bundle.redact(content.decode(errors="replace"))
        secrets.update(redacted.secrets)
        return f"# {title}\n{redacted.text}"

    def events() -> object:
        return bundle.events(target.api(), timeout_s)

    parts: dict[str, Callable[[], object]] = {
        "versions.json": lambda: _versions(target, timeout_s),
        "configuration.txt": configuration,
        "events.json": events,
        "doctor.json": lambda: findings.document(results),
        "plan-nodes.json": lambda: plan.document(plan.read(target)),
        "plan-services.json": lambda: _services(target),
    }
    contents = {name: bundle.part(read) for name, read in parts.items()}
    try:
        logs = bundle.logs(target.api(), program.COMPONENTS, timeout_s)
    except Exception as error:  # the other files are worth having
        logs = {"logs/none.txt": f"not available: {type(error).__name__}\n"}
    bundle.write(file, {**contents, **logs}, secrets)
    click.echo(f"{file}: {len(contents) + len(logs)} files", err=True)


def _versions(target: reach.Target, timeout_s: float) -> object:
    from lib.doctor import components
    from lib.kube import greeting

    server = greeting.ask(target.address(), timeout_s).version
    entries = components.read(target.api(), program.COMPONENTS, timeout_s)
    return {
        "components": [version.own(), *map(version.entry, entries)],
        "api_server": server,
    }


def _services(target: reach.Target) -> object:
    from lib.ccm import previews

    configured, api = target.configured(), target.api()
    balancers, explain = configured.plans()
    manager = daemon.ManagerDeployment.of(target.provider, api)
    request = previews.ServicesRequest(
        manager.value("--cluster-id", "", configured.cluster_id),
        manager.value("--cluster-name", "", "kubernetes"),
    )
    return plan_services.document(previews.services(api, balancers, explain, request))
