"""Charts in an OCI registry, read anonymously or with the account of its host.

Source: OCI Distribution Specification 1.1; helm.sh/docs/topics/registries.
"""

import hashlib
import ipaddress
import re
import urllib.parse
from collections.abc import Sequence

import msgspec

from lib.helm import errors, versions, web
from lib.process import decoding

LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
MANIFEST_MAX = 4 * 1024 * 1024
ARCHIVE_MAX = 16 * 1024 * 1024
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


class _Layer(msgspec.Struct, frozen=True, rename="camel"):
    media_type: str = ""
    digest: str = ""


class _Manifest(msgspec.Struct, frozen=True):
    layers: Sequence[_Layer] = ()


class _Token(msgspec.Struct, frozen=True):
    token: str | None = None
    access_token: str | None = None


class _Tags(msgspec.Struct, frozen=True):
    tags: Sequence[str] | None = None


class Registry:
    """Charts below one path of a registry.

    Implements lib/helm/sources.py, Source; safe for threads.
    """

    def __init__(self, host: str, path: str, reader: web.Reader) -> None:
        self._reader = reader
        scheme = "http" if _is_loopback(host) else "https"
        self._base = f"{scheme}://{host}/v2"
        self._path = path
        self._url = f"oci://{host}/{path}".rstrip("/")

    def newest(self, name: str) -> str:
        """See `Source.newest`."""
        version = versions.newest(self._versions(name))
        if version is None:
            raise errors.ChartNotFound(
                f"chart {name} in {self._url}: no version but pre-releases"
            )
        return version

    def fetch(self, name: str, version: str) -> bytes:
        """See `Source.fetch`."""
        # A tag cannot hold "+"; helm writes "_" in its place.
        tag = urllib.parse.quote(version.replace("+", "_"), safe="")
        answer = self._get(name, f"manifests/{tag}", MANIFEST_MAX, MANIFEST)
        if answer.status == 404:
            offered = versions.some(self._versions(name))
            raise errors.ChartNotFound(
                f'chart {name} in {self._url}: version "{version}" not found: must be'
                f" one of the registry's versions, such as {offered}"
            )
        body = web.require_ok(answer, f"{self._url}/{name}:{version}")
        layer = self._layer(name, body)
        blob = self._get(name, f"blobs/{layer.digest}", ARCHIVE_MAX, "*/*")
        archive = web.require_ok(blob, f"{self._url}/{name}@{layer.digest}")
        if f"sha256:{hashlib.sha256(archive).hexdigest()}" != layer.digest:
            raise errors.DigestMismatch(
                f"chart {name} in {self._url}: the blob is not {layer.digest}"
            )
        return archive

    def _layer(self, name: str, manifest: bytes) -> _Layer:
        try:
            layers = decoding.decode(manifest, _Manifest).layers
        except msgspec.MsgspecError:
            layers = ()
        charts = [layer for layer in layers if layer.media_type == LAYER]
        if len(charts) != 1:
            raise errors.SourceInvalid(
                f"{self._url}/{name}: must be an artifact with one layer of type"
                f" {LAYER}"
            )
        return charts[0]

    def _versions(self, name: str) -> Sequence[str]:
        answer = self._get(name, "tags/list", MANIFEST_MAX, "application/json")
        if answer.status == 404:
            raise errors.ChartNotFound(f"chart {name}: not found in {self._url}")
        body = web.require_ok(answer, f"{self._url}/{name}")
        try:
            tags = decoding.decode(body, _Tags).tags or ()
        except msgspec.MsgspecError as error:
            raise errors.SourceInvalid(
                f"{self._url}/{name}: the list of tags is malformed"
            ) from error
        return [tag.replace("_", "+") for tag in tags]

    def _get(self, name: str, path: str, limit: int, accept: str) -> web.Answer:
        """Send a GET; where the registry asks for an account or a token, with it."""
        repository = "/".join(part for part in (self._path, name) if part)
        url = f"{self._base}/{urllib.parse.quote(repository)}/{path}"
        answer = self._reader.get(url, limit, {"Accept": accept})
        if answer.status != 401:
            return answer
        account = self._reader.access.account(url)
        challenge = answer.headers.get("WWW-Authenticate", "")
        if account and challenge.lower().startswith("basic"):
            answer = self._reader.get(url, limit, {"Accept": accept}, account)
        else:
            token = self._token(challenge, account)
            headers = {"Accept": accept, "Authorization": f"Bearer {token}"}
            answer = self._reader.get(url, limit, headers) if token else answer
        if answer.status in (401, 403):
            who = f"the account {account[0]}" if account else "anonymous reading"
            raise errors.SourceUnreachable(
                f"{self._url}/{name}: the registry refuses {who}"
            )
        return answer

    def _token(self, challenge: str, account: tuple[str, str] | None) -> str | None:
        """Ask for a token where the challenge points to; an account by HTTPS only.

        Source: distribution.github.io/distribution/spec/auth/token.
        """
        kind, _, rest = challenge.partition(" ")
        asked = dict(_CHALLENGE.findall(rest))
        realm = asked.pop("realm", "")
        if kind.lower() != "bearer" or not realm.startswith(("https://", "http://")):
            return None
        separator = "&" if "?" in realm else "?"
        url = f"{realm}{separator}{urllib.parse.urlencode(asked)}"
        is_safe = realm.startswith("https://")
        answer = self._reader.get(
            url, MANIFEST_MAX, account=account if is_safe else None
        )
        if answer.status != 200:
            return None
        try:
            document = decoding.decode(answer.body, _Token)
        except msgspec.MsgspecError:
            return None
        return document.token or document.access_token


def _is_loopback(host: str) -> bool:
    """Report whether plain HTTP is used, as container tools do for loopback."""
    name = urllib.parse.urlsplit(f"//{host}").hostname or ""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
