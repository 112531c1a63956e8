"""clouds.yaml, for users whose cloud.conf says use-clouds.

Source: kubernetes/cloud-provider-openstack pkg/client/client.go (ReadClouds);
gophercloud/utils openstack/clientconfig. A clouds-public.yaml profile is not read.
"""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec
import yaml

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


class _Cloud(msgspec.Struct, frozen=True):
    auth: dict[str, object] = msgspec.field(default_factory=dict)
    region_name: str = ""
    endpoint_type: str = ""
    interface: str = ""
    cacert: str = ""
    cert: str = ""
    key: str = ""


class _Clouds(msgspec.Struct, frozen=True):
    clouds: dict[str, _Cloud] = msgspec.field(default_factory=dict)


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
    cloud = clouds.clouds[name]
    auth = dict(cloud.auth) | dict(secrets.clouds.get(name, _Cloud()).auth)
    offered = {key: _text(auth.get(native)) for key, native in _AUTH_KEYS.items()}
    offered |= {key: getattr(cloud, native) for key, native in _CLOUD_KEYS.items()}
    offered["os-endpoint-type"] = cloud.endpoint_type or cloud.interface
    return {key: value or offered.get(key, "") for key, value in values.items()}


def _first(
    paths: tuple[pathlib.Path, ...], files: Callable[[pathlib.Path], str | None]
) -> tuple[pathlib.Path | None, _Clouds]:
    for path in paths:
        text = files(path)
        if text is not None:
            return path, _decoded(path, text)
    return None, _Clouds()


def _decoded(path: pathlib.Path, text: str) -> _Clouds:
    try:
        return msgspec.convert(yaml.safe_load(text) or {}, type=_Clouds)
    except (yaml.YAMLError, msgspec.ValidationError):
        # The parser's own words may quote the file, which holds passwords.
        right = "a YAML file with a map of clouds"
        raise CloudsError("clouds-file", str(path), right) from None


def _choose(name: str, clouds: _Clouds, path: pathlib.Path) -> str:
    if name in clouds.clouds:
        return name
    if not name and len(clouds.clouds) == 1:
        return next(iter(clouds.clouds))
    known = ", ".join(sorted(clouds.clouds)) or "none"
    raise CloudsError("cloud", name, f"one of the clouds in {path}: {known}")


def _text(value: object) -> str:
    """Take a number for text: unquoted names of digits are numbers to YAML."""
    return "" if value is None else str(value)
