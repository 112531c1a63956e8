"""One archive for a report of a fault: reads, redaction and writing.

Rules: values of secret keys of the configuration never enter a file, wherever else they
occur; nothing is written but the archive, which its owner alone may read.
"""

import dataclasses
import functools
import io
import json
import os
import pathlib
import re
import tarfile
from collections.abc import Callable, Collection, Mapping

from lib.doctor import components
from lib.doctor import pods as doctor_pods
from lib.kube import client, errors, listing, recorded_events, resources
from lib.process import config, files, redaction

LAST_LINES = 500
"""Lines of the log of each container."""
LOG_MAX = 1_000_000
"""Bytes of the log of each container."""
SHORTEST = 4
"""Characters of the shortest value that is removed from all files: a shorter one would
be part of many words."""
_LINE = re.compile(r"^(\s*)([\w-]+)(\s*=\s*)(.*)$")
_CREDENTIAL = re.compile(r"passw|secret|token|credential|private|passcode", re.I)


@dataclasses.dataclass(frozen=True, slots=True)
class Redacted:
    """A configuration without its secrets. secrets: the values that were removed."""

    text: str
    secrets: frozenset[str] = dataclasses.field(repr=False)


def redact(text: str) -> Redacted:
    """Return a configuration of lines `key = value` without secret values. Pure.

    A key is secret by its name. A line of another form, but for a section, is removed:
    it may be the rest of a value.
    """
    lines: list[str] = []
    secrets: set[str] = set()
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            is_plain = not line.strip() or line.lstrip().startswith("[")
            lines.append(line if is_plain else redaction.REDACTED)
        elif redaction.is_secret(match[2]) or _CREDENTIAL.search(match[2]):
            value = match[4].strip().strip("\"'")
            secrets |= {value} if len(value) >= SHORTEST else set()
            lines.append(f"{match[1]}{match[2]}{match[3]}{redaction.REDACTED}")
        else:
            lines.append(redaction.scrub(line))
    return Redacted("\n".join([*lines, ""]), frozenset(secrets))


def part(read: Callable[[], object]) -> str:
    """Return the content of one file; a failure becomes its text.

    read: returns a text, or a document that is written as JSON.
    """
    try:
        value = read()
    except (errors.KubeError, config.ConfigError) as error:
        return f"not available: {error}\n"
    except Exception as error:  # the other files are worth having
        return f"not available: unexpected error ({type(error).__name__})\n"
    return value if isinstance(value, str) else json.dumps(value, indent=2) + "\n"


def events(api: client.Api, timeout_s: float) -> list[Mapping[str, object]]:
    """Return all Events by time: one call per page.

    Raises:
        KubeError: they cannot be listed.
    """
    return [
        {
            "time": event.at.isoformat(),
            "type": event.type,
            "reason": event.reason,
            "kind": event.involved_object.kind,
            "object": "/".join(
                filter(
                    None, (event.involved_object.namespace, event.involved_object.name)
                )
            ),
            "component": event.source.component or event.reporting_component,
            "count": event.count,
            "message": event.message,
        }
        for event in recorded_events.read(api, timeout_s)
    ]


def logs(
    api: client.Api, names: Collection[str], timeout_s: float
) -> Mapping[str, str]:
    """Return the last lines of the Pods of components, by file: one call per container.

    names: values of the label. One file reports that there are no such Pods.

    Raises:
        KubeError: the Pods cannot be listed.
    """
    listed = listing.read(
        api,
        resources.PODS,
        doctor_pods.Pod,
        timeout_s=timeout_s,
        selectors={"labelSelector": components.LABEL},
    )
    label = components.LABEL
    pods = [pod for pod in listed.items if pod.metadata.labels[label] in names]
    if not pods:
        text = f"no Pods with the label {label} in {', '.join(sorted(names))}\n"
        return {"logs/none.txt": text}
    query = {"tailLines": str(LAST_LINES), "limitBytes": str(LOG_MAX)}
    result = {}
    for pod in pods:
        about = pod.metadata
        path = resources.PODS.path(about.namespace, about.name, "log")
        for container in pod.spec.containers:
            name = f"logs/{about.namespace}/{about.name}/{container.name}.log"
            of_container = {**query, "container": container.name}
            read = functools.partial(
                api.request, "GET", path, query=of_container, timeout_s=timeout_s
            )
            result[name] = part(functools.partial(_text, read))
    return result


def _text(read: Callable[[], bytes]) -> str:
    return read().decode(errors="replace")


def write(
    path: pathlib.Path, contents: Mapping[str, str], secrets: Collection[str]
) -> None:
    """Write the archive, a tar.gz with one folder. contents: text by file.

    secrets: values that are removed wherever they occur.

    Raises:
        ConfigError: the file exists, or cannot be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileExistsError:
        problem = config.stated("--bundle", f"{path}: must not exist")
        raise config.ConfigError([problem]) from None
    except OSError as error:
        problem = config.stated("--bundle", f"{path}: {files.reason(error)}")
        raise config.ConfigError([problem]) from None
    with open(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, text in sorted(contents.items()):
            content = clean(text, secrets).encode(errors="replace")
            entry = tarfile.TarInfo(f"mooring-bundle/{name}")
            entry.size, entry.mode = len(content), 0o600
            tar.addfile(entry, io.BytesIO(content))


def clean(text: str, secrets: Collection[str]) -> str:
    """Return a text without these values, and without what is plainly a secret."""
    # The longest first: it may contain a shorter one.
    for secret in sorted(secrets, key=len, reverse=True):
        for form in (secret, json.dumps(secret)[1:-1]):
            text = text.replace(form, redaction.REDACTED)
    return redaction.scrub(text)
