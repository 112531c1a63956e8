"""Prepares the release of one component, or reports why it cannot be released.

  ./pants run build-support/release.py -- COMPONENT VERSION

Nothing is written to the repository, tagged or pushed. Whether the component changed
since its last tag follows from the dependency graph of Pants: the files from which its
program is built, its chart, its image, and the third-party distributions in its PEX.

Standard library only.
"""

import argparse
import dataclasses
import difflib
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import zipfile
from collections.abc import Collection, Mapping, Sequence

ROOT = pathlib.Path()
LOCK = "3rdparty/python/default.lock.txt"
UMBRELLAS = ("cloud-provider-dvp", "cloud-provider-openstack")
IMAGES = pathlib.Path("dist/images")
TIMEOUT_S = 1800.0
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_HEADING = re.compile(r"^## (\S+) \((\S+)\)$", re.MULTILINE)
_PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", re.MULTILINE | re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_NOT_BUILT = ("snapshots/", "README.md", "BUILD")
"""Parts of a chart's folder that no release contains."""


class ReleaseError(Exception):
    """A command failed, or an argument is invalid. The text is for the user."""


@dataclasses.dataclass(frozen=True)
class Facts:
    """State of a component in the checkout.

    last_tag: empty before the first release. changed: files that differ from it.
    sources: files that the release contains. pins: changed pins of third-party
    distributions, by name, of those in the PEX. versions: version by the field that
    states it. changelog: version and date of the newest entry.
    """

    component: str
    version: str
    last_tag: str = ""
    dirty: Sequence[str] = ()
    changed: Collection[str] = ()
    sources: Collection[str] = ()
    pins: Mapping[str, str] = dataclasses.field(default_factory=dict)
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    changelog: tuple[str, str] = ("", "")

    @property
    def tag(self) -> str:
        """The tag of the release."""
        return tag_of(self.component, self.version)

    @property
    def causes(self) -> list[str]:
        """Return the changed files and pins that are part of the release."""
        files = sorted(set(self.changed) & set(self.sources))
        return [*files, *(f"{LOCK}: {name} {pin}" for name, pin in self.pins.items())]


def tag_of(component: str, version: str) -> str:
    """Return the tag of a release."""
    return f"{component}/v{version}"


def judge(facts: Facts) -> list[str]:
    """Return the reasons for which the component cannot be released."""
    problems = [*_judge_version(facts), *_judge_texts(facts)]
    if facts.dirty:
        files = ", ".join(facts.dirty[:3]) + (", ..." if len(facts.dirty) > 3 else "")
        problems.append(f"working tree: not clean ({files}): must have no changes")
    if facts.last_tag and not facts.causes:
        problems.append(
            f"{facts.component}: unchanged since {facts.last_tag}: none of its"
            f" {len(facts.sources)} files and no distribution in it differs"
        )
    return problems


def _judge_version(facts: Facts) -> list[str]:
    if not _VERSION.fullmatch(facts.version):
        return [f'VERSION: invalid value "{facts.version}": must be MAJOR.MINOR.PATCH']
    last = facts.last_tag.rpartition("/v")[2]
    if last and numbers(facts.version) <= numbers(last):
        return [
            f'VERSION: invalid value "{facts.version}": must be greater than {last},'
            f" which {facts.last_tag} has"
        ]
    return []


def _judge_texts(facts: Facts) -> list[str]:
    problems = [
        f'{field}: invalid value "{version}": must be {facts.version}'
        for field, version in facts.versions.items()
        if version != facts.version
    ]
    field = f"cmd/{folder(facts.component)}/CHANGELOG.md"
    version, date = facts.changelog
    if version != facts.version:
        problems.append(f'{field}: invalid value "{version}": must be {facts.version}')
    elif not _DATE.fullmatch(date):
        problems.append(
            f'{field}: invalid value "{date}": must be the date, YYYY-MM-DD'
        )
    return problems


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version."""
    return tuple(int(part) for part in version.split("."))


def folder(component: str) -> str:
    """Return the name of a component's folder in cmd/."""
    return component.replace("-", "_")


def components(root: pathlib.Path) -> list[str]:
    """Return the components that have a version and a changelog of their own."""
    files = root.glob("cmd/*/CHANGELOG.md")
    return sorted(file.parent.name.replace("_", "-") for file in files)


def run(root: pathlib.Path, *words: str) -> str:
    """Return what a command writes to standard output.

    Raises:
        ReleaseError: it failed, or did not end in time.
    """
    env = {**os.environ, "PANTS_CONCURRENT": "true", "PANTS_PANTSD": "false"}
    try:
        result = subprocess.run(
            words,
            cwd=root,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise ReleaseError(f"{words[0]}: no result within {TIMEOUT_S:.0f} s") from error
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines()[-3:]
        raise ReleaseError(f"{' '.join(words[:3])}: failed: {' '.join(lines)}")
    return result.stdout


def last_tag(root: pathlib.Path, component: str) -> str:
    """Return the tag of the component's newest release; empty if it has none."""
    tags = run(root, "git", "tag", "--list", tag_of(component, "*")).split()
    released = [tag for tag in tags if _VERSION.fullmatch(tag.rpartition("/v")[2])]
    return max(released, key=lambda tag: numbers(tag.rpartition("/v")[2]), default="")


def changed_files(root: pathlib.Path, tag: str) -> list[str]:
    """Return the files that differ between a tag and HEAD."""
    return run(root, "git", "diff", "--name-only", tag, "HEAD").splitlines()


def dirty_files(root: pathlib.Path) -> list[str]:
    """Return the files of the working tree that are not committed."""
    lines = run(root, "git", "status", "--porcelain").splitlines()
    return [line[3:] for line in lines]


def changed_pins(
    root: pathlib.Path, tag: str, distributions: Collection[str]
) -> dict[str, str]:
    """Return the changed pins among some distributions: "old -> new" by name."""
    old = pins(run(root, "git", "show", f"{tag}:{LOCK}"))
    new = pins((root / LOCK).read_text())
    return {
        name: f"{old.get(name, 'absent')} -> {new.get(name, 'absent')}"
        for name in sorted(distributions)
        if old.get(name) != new.get(name)
    }


def pins(lock: str) -> dict[str, str]:
    """Return the versions that a lock file pins, by the normalized name."""
    return {normalized(name): version for name, version in _PIN.findall(lock)}


def normalized(name: str) -> str:
    """Return the name of a distribution as indexes compare it. Source: PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions(pex: pathlib.Path) -> set[str]:
    """Return the names of the third-party distributions in a PEX."""
    with zipfile.ZipFile(pex) as archive:
        info = json.loads(archive.read("PEX-INFO"))
    return {normalized(wheel.partition("-")[0]) for wheel in info["distributions"]}


def sources(root: pathlib.Path, component: str) -> set[str]:
    """Return the files that a release contains: program, chart and image."""
    target = f"cmd/{folder(component)}:{component}"
    files = run(root, "./pants", "--tag=[]", "filedeps", "--transitive", target).split()
    code = {
        file for file in files if not file.startswith("3rdparty/") and is_source(file)
    }
    return code | own_files(root, component)


def is_source(file: str) -> bool:
    """Report whether a file of the graph is more than a description of targets."""
    return pathlib.PurePath(file).name != "BUILD"


def own_files(root: pathlib.Path, component: str) -> set[str]:
    """Return the files of a component's chart and image that a release contains."""
    top = f"charts/{component}/"
    tracked = tracked_files(root, top, f"images/{component}/")
    return {
        file
        for file in tracked
        if not file.removeprefix(top).startswith(_NOT_BUILT)
        and not file.endswith(("/BUILD", "README.md", "/shared.schema.json"))
    }


def tracked_files(root: pathlib.Path, *folders: str) -> list[str]:
    """Return the files of folders in git; in place of links, the files behind them."""
    files = []
    for file in run(root, "git", "ls-files", *folders).splitlines():
        if (root / file).is_symlink():
            target = (root / file).resolve().relative_to(root.resolve())
            files += tracked_files(root, str(target))
        else:
            files.append(file)
    return files


def stated_versions(root: pathlib.Path, component: str) -> dict[str, str]:
    """Return the version of each file that states it, by file and field."""
    file = f"cmd/{folder(component)}/version.py"
    match = re.search(r'^VERSION = "(.*)"$', (root / file).read_text(), re.MULTILINE)
    versions = {f"{file}: VERSION": match[1] if match else ""}
    chart = root / "charts" / component / "Chart.yaml"
    if chart.exists():
        versions[f"charts/{component}/Chart.yaml: appVersion"] = chart_field(
            chart.read_text(), "appVersion"
        )
    return versions


def chart_field(text: str, field: str) -> str:
    """Return a field of the top level of a Chart.yaml; empty if it is missing."""
    match = re.search(rf"^{field}: \"?([^\"\n]*)\"?$", text, re.MULTILINE)
    return match[1] if match else ""


def chart_bumps(root: pathlib.Path, component: str, tag: str) -> list[str]:
    """Return the change of version of the charts that contain the component."""
    bumps = []
    for chart in (component, *UMBRELLAS):
        file = f"charts/{chart}/Chart.yaml"
        here = root / file
        if not here.exists() or (
            chart in UMBRELLAS and f"- name: {component}\n" not in here.read_text()
        ):
            continue
        new = chart_field(here.read_text(), "version")
        old = new
        if tag and run(root, "git", "ls-tree", tag, "--", file).strip():
            old = chart_field(run(root, "git", "show", f"{tag}:{file}"), "version")
        note = "" if not tag or old != new else " (unchanged: must be increased)"
        bumps.append(f"{chart} {old if tag else 'none'} -> {new}{note}")
    return bumps


def read(root: pathlib.Path, component: str, version: str) -> Facts:
    """Read the state of a component; builds its PEX.

    Raises:
        ReleaseError: the component is unknown, or a command failed.
    """
    known = components(root)
    if component not in known:
        close = difflib.get_close_matches(component, known, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ReleaseError(
            f'COMPONENT: unsupported value "{component}": must be one of'
            f" {', '.join(known)}{hint}"
        )
    text = (root / "cmd" / folder(component) / "CHANGELOG.md").read_text()
    entry = _HEADING.search(text)
    run(root, "./pants", "--tag=[]", "package", f"cmd/{folder(component)}:{component}")
    tag = last_tag(root, component)
    inside = distributions(pex_of(root, component))
    return Facts(
        component,
        version,
        tag,
        dirty_files(root),
        changed_files(root, tag) if tag else (),
        sources(root, component),
        changed_pins(root, tag, inside) if tag else {},
        stated_versions(root, component),
        (entry[1], entry[2]) if entry else ("", ""),
    )


def pex_of(root: pathlib.Path, component: str) -> pathlib.Path:
    """Return the packaged program of a component."""
    return root / "dist" / f"{component}.pex"


def image(root: pathlib.Path, component: str) -> tuple[str, str]:
    """Build the image of a component; return its digest and the path of its SBOM.

    Both are empty for a component without an image.

    Raises:
        ReleaseError: it cannot be built, or has no SBOM.
    """
    if not (root / "images" / component / "image.yaml").exists():
        return "", ""
    run(root, "./pants", "run", "cmd/mooring", "--", "lab", "image", component)
    index = json.loads((root / IMAGES / component / "index.json").read_text())
    digest = str(index["manifests"][0]["digest"])
    sboms = sorted((root / IMAGES).glob(f"{component}.*.json"))
    if not sboms:
        raise ReleaseError(f"{IMAGES}/{component}: the image has no SBOM beside it")
    return digest, str(sboms[0].relative_to(root))


def main(arguments: Sequence[str]) -> int:
    """Print what a release consists of, or the reasons against it."""
    parser = argparse.ArgumentParser(prog="release.py", description=__doc__)
    parser.add_argument("component", metavar="COMPONENT")
    parser.add_argument("version", metavar="VERSION")
    parsed = parser.parse_args(arguments)
    try:
        facts = read(ROOT, parsed.component, parsed.version)
        problems = judge(facts)
        if not problems:
            print(report(ROOT, facts))
    except ReleaseError as error:
        problems = [str(error)]
    for problem in problems:
        print(f"release: {problem}", file=sys.stderr)
    return 1 if problems else 0


def report(root: pathlib.Path, facts: Facts) -> str:
    """Build the rest, and return what the release consists of."""
    pex = pex_of(root, facts.component)
    digest, sbom = image(root, facts.component)
    since = facts.last_tag or "the first commit"
    rows = {
        "tag": facts.tag,
        "changes": f"{len(facts.causes)} since {since}",
        "PEX": f"{pex.name} sha256:{hashlib.sha256(pex.read_bytes()).hexdigest()}",
        "image": digest or "none",
        "SBOM": sbom or "none",
        "chart": ", ".join(chart_bumps(root, facts.component, facts.last_tag))
        or "none",
    }
    return "\n".join(f"{name:8} {value}" for name, value in rows.items())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
