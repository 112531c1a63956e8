"""clouds.yaml, for users whose cloud.conf says use-clouds.

Source: kubernetes/cloud-provider-openstack pkg/client/client.go (ReadClouds);
gophercloud/utils openstack/clientconfig. A clouds-public.yaml profile is not read.
"""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Annotated

from lib.process import config, yaml_documents
from lib.process.documented import Documented

_AUTH_KEYS = {
    "auth-url": "auth_url",
    "username": "username",
    "user-id": "user_id",
    "password": "password",
    "user-domain-id": "user_domain_id",
    "user-domain-name": "user_domain_name",
    "domain-id": "domain_id",
    "domain-name": "domain_name",
    "tenant-id": "project_id",
    "tenant-name": "project_name",
    "tenant-domain-id": "project_domain_id",
    "tenant-domain-name": "project_domain_name",
    "application-credential-id": "application_credential_id",
    "application-credential-name": "application_credential_name",
    "application-credential-secret": "application_credential_secret",
    "token": "token",
}
_CLOUD_KEYS = {
    "region": "region_name",
    "os-endpoint-type": "endpoint_type",
    "ca-file": "cacert",
    "cert-file": "cert",
    "key-file": "key",
}
_OWN_KEYS = ("trust-id", "trustee-id", "trustee-password")
"""Never read from clouds.yaml."""

CLOUD_CONF_KEYS = (*_AUTH_KEYS, *_CLOUD_KEYS, *_OWN_KEYS)
"""All text keys of [Global] that describe the cloud."""

USE_CLOUDS: Annotated[
    bool,
    Documented(
        "Read a clouds.yaml, and a secure.yaml with secrets; keys set in [Global] win.",
        name="use-clouds",
        default="false",
    ),
] = False
CLOUDS_FILE: Annotated[
    str,
    Documented(
        "Path of clouds.yaml; empty: `OS_CLIENT_CONFIG_FILE`, then clouds.yaml in the"
        " working directory, `~/.config/openstack` and `/etc/openstack`.",
        name="clouds-file",
        kind="path",
    ),
] = ""
CLOUD: Annotated[
    str,
    Documented(
        "Name of the cloud in clouds.yaml; empty: the only one.",
        name="cloud",
    ),
] = ""
"""Defaults of the keys of [Global] that name a clouds.yaml."""

_SYSTEM = pathlib.Path("/etc/openstack")


class CloudsError(Exception):
    """clouds.yaml can't be used; key, value and right are about cloud.conf."""

    def __init__(self, key: str, value: str, right: str) -> None:
        super().__init__(right)
        self.key = key
        self.value = value
        self.right = right


@dataclasses.dataclass(frozen=True, slots=True)
class CloudsFile:
    """Where it is searched for. clouds_file, cloud: from cloud.conf, may be empty."""

    clouds_file: str
    cloud: str
    env: Mapping[str, str]

    def candidates(self, name: str) -> tuple[pathlib.Path, ...]:
        """Return the files to try, the first that exists counts."""
        home = self.env.get("HOME", "")
        config = self.env.get("XDG_CONFIG_HOME") or (home and f"{home}/.config")
        folders = [pathlib.Path()]
        if config:
            folders.append(pathlib.Path(config) / "openstack")
        return tuple(folder / name for folder in (*folders, _SYSTEM))


def fill(
    values: Mapping[str, str],
    place: CloudsFile,
    files: Callable[[pathlib.Path], str | None],
) -> dict[str, str]:
    """Fill the empty values of `found` (keys as in cloud.conf) from clouds.yaml.

    Raises:
        CloudsError: no file, no such cloud, or not readable as one.
    """
    named = place.clouds_file or place.env.get("OS_CLIENT_CONFIG_FILE", "")
    first = (pathlib.Path(named),) if named else ()
    path, clouds = _first(first + place.candidates("clouds.yaml"), files)
    if path is None:
        right = "the path of an existing clouds.yaml, since use-clouds is set"
        raise CloudsError("clouds-file", named, right)
    secure = place.env.get("OS_CLIENT_SECURE_FILE", "")
    first = (pathlib.Path(secure),) if secure else ()
    _, secrets = _first(first + place.candidates("secure.yaml"), files)
    name = _choose(place.cloud, clouds, path)
    cloud = _map(clouds[name], f"clouds.{name}", path)
    auth = _map(cloud.get("auth"), f"clouds.{name}.auth", path)
    secret = _map(secrets.get(name), f"clouds.{name}", path)
    auth |= _map(secret.get("auth"), f"clouds.{name}.auth", path)
    where = f"clouds.{name}"
    offered = {
        key: _text(auth.get(native), f"{where}.auth.{native}", path)
        for key, native in _AUTH_KEYS.items()
    }
    offered |= {
        key: _text(cloud.get(native), f"{where}.{native}", path)
        for key, native in _CLOUD_KEYS.items()
    }
    interface = _text(cloud.get("interface"), f"{where}.interface", path)
    offered["os-endpoint-type"] = offered["os-endpoint-type"] or interface
    domain = _text(auth.get("default_domain"), f"{where}.auth.default_domain", path)
    filled = {key: value or offered.get(key, "") for key, value in values.items()}
    return filled | _default_domains(filled, domain)


def _default_domains(filled: Mapping[str, str], domain: str) -> dict[str, str]:
    """Return the domains of user and project where none is named.

    Source: gophercloud/utils openstack/clientconfig/requests.go (setDomainIfNeeded).
    """
    if not domain or any(filled.get(key) for key in ("domain-id", "domain-name")):
        return {}
    owners = [owner for owner in ("user", "tenant") if f"{owner}-domain-id" in filled]
    return {
        f"{owner}-domain-id": domain
        for owner in owners
        if not (filled[f"{owner}-domain-id"] or filled.get(f"{owner}-domain-name"))
    }


def _first(
    paths: tuple[pathlib.Path, ...], files: Callable[[pathlib.Path], str | None]
) -> tuple[pathlib.Path | None, dict[str, object]]:
    for path in paths:
        text = files(path)
        if text is not None:
            return path, _decoded(path, text)
    return None, {}


def _decoded(path: pathlib.Path, text: str) -> dict[str, object]:
    """Return the clouds of a file, not judged yet: only one of them is needed."""
    try:
        documents = yaml_documents.texts(str(path), text)
    except config.ConfigError as error:
        _, _, where = str(error).partition("that can be read")
        right = f"a YAML file with a map of clouds{where}"
        raise CloudsError("clouds-file", str(path), right) from None
    document = _map(next(iter(documents), None), "", path)
    return _map(document.get("clouds"), "clouds", path)


def _choose(name: str, clouds: Mapping[str, object], path: pathlib.Path) -> str:
    if name in clouds:
        return name
    if not name and len(clouds) == 1:
        return next(iter(clouds))
    known = ", ".join(sorted(clouds)) or "none"
    raise CloudsError("cloud", name, f"one of the clouds in {path}: {known}")


def _map(value: object, field: str, path: pathlib.Path) -> dict[str, object]:
    """Return a map; empty is none. Neither message shows a value: it may be secret."""
    if value in (None, ""):
        return {}
    if isinstance(value, dict):
        return {str(key): item for key, item in value.items()}
    right = "a YAML file with a map of clouds"
    if field not in ("", "clouds"):
        right = f"{right}: {field} must be a map"
    raise CloudsError("clouds-file", str(path), right)


def _text(value: object, field: str, path: pathlib.Path) -> str:
    """Return the characters of a field as they are written; empty: not set."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    right = f"a YAML file with a map of clouds: {field} must be a text"
    raise CloudsError("clouds-file", str(path), right)
