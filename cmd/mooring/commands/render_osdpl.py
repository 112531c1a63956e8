"""`mooring render osdpl`: values and manifests of an OpenStackDeployment.

Slow imports are inside the functions, so that `--help` is fast.
"""

import os
import pathlib
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import click

from mooring.commands import documents, osdpl_options, outputs, paths

if TYPE_CHECKING:
    from lib.helm import cache, command
    from lib.osdpl.api import model

FOLDER = click.Path(file_okay=False, path_type=pathlib.Path)


@click.command()
@click.argument("file", type=paths.FILE)
@click.option(
    "--charts",
    "source",
    default="",
    metavar="SOURCE",
    help="Source of all charts: an HTTP repository, an OCI registry (oci://) or a"
    " directory. Default: the repositories of the object.",
)
@click.option(
    "--output-dir", "folder", type=FOLDER, required=True, help="Folder for the files."
)
@click.option("--helm", default="helm", show_default=True, help="Program of helm.")
@osdpl_options.access
@outputs.option
def osdpl(
    file: pathlib.Path,
    source: str,
    folder: pathlib.Path,
    helm: str,
    access: pathlib.Path | None,
    output: str,
) -> None:
    """Write values and manifests of each release.

    No cluster is read: passwords and values of Secrets are placeholders derived from
    their names, so two runs are equal. A rule that the object violates is printed, and
    nothing is written. Each release has a folder with values.yaml and
    manifests.yaml. The exit code is 1 if a service or a release can't be rendered; the
    others are written.

    Example: mooring render osdpl cloud.yaml --output-dir out
    """
    from lib.process import config

    if source and pathlib.Path(source).is_dir():
        source = str(pathlib.Path(source).resolve())
    try:
        rendered = _render(file, source)
    except config.ConfigError as error:
        for problem in error.problems:
            click.echo(str(problem), err=True)
        sys.exit(1)
    for refusal in rendered.refusals:
        for problem in refusal.problems:
            click.echo(f"{refusal.service}: {refusal.reason}: {problem}", err=True)
    entries, is_complete = _write(rendered, source, folder, helm, access)
    _show(entries, output)
    sys.exit(0 if is_complete and not rendered.refusals else 1)


def _render(file: pathlib.Path, source: str) -> "model.Rendered":
    from lib.osdpl.api import model, references, spec
    from lib.osdpl.reconcile import decide, snapshot
    from lib.osdpl.values import layers, render, required_secrets
    from lib.process import config

    parsed = document(file)
    deployment = spec.parse(parsed)
    known = snapshot.Desired(deployment, spec=layers.effective(deployment.spec))
    config.require(decide.violations(parsed, known, None, {}))
    secret_references = references.find(deployment.spec)
    secrets: dict[str, dict[str, bytes]] = {}
    for reference in secret_references:
        value = f"placeholder-{reference.secret}-{reference.key}".encode()
        secrets.setdefault(reference.secret, {})[reference.key] = value
    plain = references.substitute(deployment.spec, secrets)
    services = layers.services(layers.effective(plain))
    inputs = render.Inputs(
        deployment=model.Deployment(
            name=deployment.name,
            namespace=deployment.namespace,
            uid=deployment.uid,
            generation=deployment.generation,
            is_draft=deployment.is_draft,
            spec=plain,
        ),
        written=deployment.spec,
        credentials=required_secrets.placeholders(services),
        repository_default=osdpl_options.chart_source(source),
    )
    return render.render(inputs)


def document(file: pathlib.Path) -> dict[str, Any]:
    """Return the OpenStackDeployment of a file, which may hold other objects.

    Raises:
        ConfigError: it can't be read, or has none or several.
    """
    from lib.osdpl.api import spec
    from lib.process import config, yaml_documents

    documents = yaml_documents.read(str(file), config.read_text(str(file)))
    listed = [
        (
            document["items"]
            if isinstance(document, dict)
            and document.get("kind") == "List"
            and isinstance(document.get("items"), list)
            else [document]
        )
        for document in documents
    ]
    objects = [each for part in listed for each in part if isinstance(each, dict)]
    of_kind = [document for document in objects if document.get("kind") == spec.KIND]
    if len(of_kind) != 1:
        expected = f"one {spec.KIND}, not {len(of_kind)}"
        raise config.ConfigError([config.FieldProblem(str(file), None, expected)])
    return of_kind[0]


def _write(
    rendered: "model.Rendered",
    source: str,
    output: pathlib.Path,
    program: str,
    access: pathlib.Path | None,
) -> tuple[list[documents.RenderedRelease], bool]:
    """Write the files of each release; return them, and whether all are written."""
    from lib.helm import command, errors

    entries: list[documents.RenderedRelease] = []
    is_complete = True
    with tempfile.TemporaryDirectory(prefix="mooring-render-") as folder:
        home = pathlib.Path(folder)
        helm = command.Command(program, home / "helm", None, os.environ)
        charts = osdpl_options.chart_cache(home / "charts", access)
        for bundle in rendered.bundles:
            for release in bundle.releases:
                try:
                    entry = _write_release(release, source, output, helm, charts)
                    entries.append(entry)
                except errors.HelmError as error:
                    click.echo(f"{release.name}: {error}", err=True)
                    is_complete = False
    return entries, is_complete


def _show(entries: list[documents.RenderedRelease], output: str) -> None:
    names = [outputs.name("release", entry["release"]) for entry in entries]
    document: documents.RenderedReleases = {"releases": entries}
    if outputs.document(output, document, names):
        return
    for entry in entries:
        name, version, digest = entry["chart"], entry["version"], entry["digest"]
        click.echo(f"{entry['release']}: chart {name} {version} {digest}")
        if output == outputs.WIDE:
            click.echo(f"  {entry['folder']}")


def _write_release(
    release: "model.Release",
    source: str,
    output: pathlib.Path,
    helm: "command.Command",
    charts: "cache.Charts",
) -> documents.RenderedRelease:
    """Write values and manifests of one release.

    Raises:
        HelmError: the chart can't be read, or it does not render.
    """
    import threading

    import yaml

    from lib.helm import model
    from lib.osdpl.reconcile import images

    pin = model.Pin(release.chart.name, release.chart.version, release.chart.digest)
    chart = charts.get(source or release.chart.repository.url, pin)
    content = chart.path.read_bytes()
    complete = images.relocated(release.values, content, release.images_base)
    run = model.Template(
        release=release.name,
        namespace=release.namespace,
        chart=chart.path,
        values=complete,
    )
    manifests = helm.template(run, threading.Event())
    folder = output / release.name
    folder.mkdir(parents=True, exist_ok=True)
    values = yaml.safe_dump(complete, sort_keys=True)
    (folder / "values.yaml").write_text(values, encoding="utf-8")
    (folder / "manifests.yaml").write_text(manifests, encoding="utf-8")
    return {
        "release": release.name,
        "chart": chart.name,
        "version": chart.version,
        "digest": chart.digest,
        "folder": str(folder),
    }
