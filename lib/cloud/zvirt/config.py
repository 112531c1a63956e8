"""How the engine is reached: variables and files of the references, and their problems.

Three spellings: ZVIRT_USERNAME and ZVIRT_INSECURE (cloud controller manager),
ZVIRT_USER and ZVIRT_CONNECT_INSECURE (Cluster API provider), and the YAML of
OVIRT_CONFIG (CSI driver). Each of the variables may be a file instead: NAME_FILE is its
path. Files are read again when they change.

Source: deckhouse modules/030-cloud-provider-zvirt, environment of its components.
"""

import base64
import binascii
import dataclasses
import datetime
import pathlib
import re
import urllib.parse
from collections.abc import Mapping

from cryptography import x509

from lib.cloud.support import source
from lib.process import config, yaml_documents

URL = "ZVIRT_API_URL"
USERNAMES = ("ZVIRT_USERNAME", "ZVIRT_USER")
PASSWORD = "ZVIRT_PASSWORD"  # noqa: S105 # name of a variable
INSECURE = ("ZVIRT_INSECURE", "ZVIRT_CONNECT_INSECURE")
CA_BUNDLE = "ZVIRT_CA_BUNDLE"
OVIRT_CONFIG = "OVIRT_CONFIG"
_VARIABLES = (
    ("ZVIRT_API_URL", "ZVIRT_API_URL_FILE"),
    ("ZVIRT_USERNAME", "ZVIRT_USERNAME_FILE"),
    ("ZVIRT_USER", "ZVIRT_USER_FILE"),
    ("ZVIRT_PASSWORD", "ZVIRT_PASSWORD_FILE"),
    ("ZVIRT_INSECURE", "ZVIRT_INSECURE_FILE"),
    ("ZVIRT_CONNECT_INSECURE", "ZVIRT_CONNECT_INSECURE_FILE"),
    ("ZVIRT_CA_BUNDLE", "ZVIRT_CA_BUNDLE_FILE"),
)
"""Each variable, and that with the path of a file which holds the value."""
FILES = dict(_VARIABLES)
_KEYS = ("ovirt_url", "ovirt_username", "ovirt_password", "ovirt_insecure")
_CA_KEY = "ovirt_cafile"
_NO_EFFECT = ("clusterid",)
"""Keys that the references write, and that nothing reads."""
API_PATH = "/ovirt-engine/api"
_PATHS = ("", "/ovirt-engine", API_PATH)
_BEGIN = "-----BEGIN CERTIFICATE-----"
_PEM = re.compile(f"{_BEGIN}.*?-----END CERTIFICATE-----", re.S)
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no", "")
_URL_TEXT = "the URL of the engine, such as https://engine.example.com/ovirt-engine/api"
_USER_TEXT = "a user with its profile, such as admin@internal"
_CA_TEXT = "certificates in PEM"


@dataclasses.dataclass(frozen=True, slots=True)
class SettingNames:
    """The settings that errors name: a variable, or a key of a file."""

    url: str = URL
    username: str = USERNAMES[0]
    ca: str = CA_BUNDLE


@dataclasses.dataclass(frozen=True, slots=True)
class EngineConfig:
    """One engine and its user. url: of the API, without trailing slash.

    ca: PEM of the authorities; empty: those of the system. insecure: certificates are
    not verified. names: where URL, user and authorities come from.
    """

    url: str
    username: str
    password: str = dataclasses.field(repr=False)
    ca: str = dataclasses.field(default="", repr=False)
    insecure: bool = False
    names: SettingNames = dataclasses.field(default_factory=SettingNames, compare=False)

    @property
    def host(self) -> str:
        """Scheme, name and port, under which the single sign-on is, too."""
        return self.url.removesuffix(API_PATH)


@dataclasses.dataclass(slots=True)
class _Value:
    """A value, and the field that users know it by."""

    field: str
    text: str


class _Reader:
    """Values of variables and files; problems and files are collected."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.problems: list[config.FieldProblem | str] = []
        self.files: set[pathlib.Path] = set()

    def value(self, *names: str) -> _Value:
        """Return the value of a variable that has several names."""
        values = [self._one(name) for name in names if self._is_set(name)]
        for other in values[1:]:
            if other.text != values[0].text:
                self.problems.append(config.conflict(values[0].field, other.field))
        return values[0] if values else _Value(names[0], "")

    def _is_set(self, name: str) -> bool:
        variable = FILES[name]
        return bool(self._env.get(name) or self._env.get(variable))

    def _one(self, name: str) -> _Value:
        variable = FILES[name]
        path, text = self._env.get(variable, ""), self._env.get(name, "")
        if path and text:
            self.problems.append(config.conflict(name, variable))
        if not path:
            return _Value(name, text.strip())
        return _Value(variable, self.content(variable, path).strip())

    def content(self, field: str, path: str) -> str:
        """Return the content of a file; empty with a problem."""
        self.files.add(pathlib.Path(path))
        problem = config.unusable_file(field, path)
        if problem is not None:
            self.problems.append(problem)
            return ""
        try:
            return pathlib.Path(path).read_text()
        except (OSError, UnicodeDecodeError):
            shown = config.shown(path)
            self.problems.append(config.stated(field, f"{shown}: no text"))
            return ""


@dataclasses.dataclass(frozen=True, slots=True)
class _Raw:
    """All values before validation."""

    url: _Value
    username: _Value
    password: _Value
    insecure: _Value
    ca: _Value


def read(
    env: Mapping[str, str], now: datetime.datetime, field: str = OVIRT_CONFIG
) -> source.ReadConfig[EngineConfig]:
    """Read the configuration of an environment, and which files it is in.

    now: an authority that has expired is a problem. field: what problems name in place
    of OVIRT_CONFIG.

    Raises:
        ConfigError: with every problem.
    """
    reader = _Reader(env)
    raw = (
        _of_file(reader, env, field) if env.get(OVIRT_CONFIG) else _of_variables(reader)
    )
    unreadable = {
        problem.field
        for problem in reader.problems
        if isinstance(problem, config.FieldProblem)
    }
    problems = [
        problem
        for problem in (_url_problem(raw), _user_problem(raw), *_others(raw, now))
        if problem is not None and problem.field not in unreadable
    ]
    reader.problems += problems
    if reader.problems:
        raise config.ConfigError(reader.problems)
    is_insecure = raw.insecure.text.lower() in _TRUE
    warnings = ("certificates are not verified",) if is_insecure and raw.ca.text else ()
    parts = urllib.parse.urlsplit(raw.url.text)
    settings = EngineConfig(
        f"https://{parts.netloc}{API_PATH}",
        raw.username.text,
        raw.password.text,
        raw.ca.text,
        is_insecure,
        SettingNames(raw.url.field, raw.username.field, raw.ca.field),
    )
    return source.ReadConfig(settings, frozenset(reader.files), warnings)


def _of_variables(reader: _Reader) -> _Raw:
    return _Raw(
        reader.value(URL),
        reader.value(*USERNAMES),
        reader.value(PASSWORD),
        reader.value(*INSECURE),
        reader.value(CA_BUNDLE),
    )


def _of_file(reader: _Reader, env: Mapping[str, str], field: str) -> _Raw:
    path = env[OVIRT_CONFIG]
    document = _document(reader, field, path)
    known = (*_KEYS, _CA_KEY)
    for key in sorted(document.keys() - {*known, *_NO_EFFECT}):
        hint = config.did_you_mean(key, known) or f": must be one of {', '.join(known)}"
        reader.problems.append(config.unknown(f"{field} {key}", "key", hint))
    url, username, password, insecure, ca = (
        _Value(f"{field} {key}", _text(document.get(key))) for key in known
    )
    if ca.text and _BEGIN not in ca.text:
        ca = _Value(ca.field, reader.content(ca.field, ca.text))
    return _Raw(url, username, password, insecure, ca)


def _document(reader: _Reader, field: str, path: str) -> Mapping[str, object]:
    """Return the mapping in a file; empty with a problem."""
    content = reader.content(field, path)
    try:
        document = next(iter(yaml_documents.texts(path, content)), {})
    except config.ConfigError:
        document = None
    if isinstance(document, dict):
        return {str(key): value for key, value in document.items()}
    problem = f"{config.shown(path)}: no YAML mapping"
    reader.problems.append(config.stated(field, problem))
    return {}


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


def _url_problem(raw: _Raw) -> config.FieldProblem | None:
    """Return the problem of the URL. It may hold a password, which is not shown."""
    field, text = raw.url.field, raw.url.text
    try:
        parts = urllib.parse.urlsplit(text)
        is_sound = bool(
            parts.scheme == "https"
            and parts.hostname
            and (parts.port is None or parts.port > 0)
            and parts.path.rstrip("/") in _PATHS
            and not (parts.query or parts.fragment or "@" in parts.netloc)
            and not re.search(r"\s", text)
        )
    except ValueError:
        is_sound = False
    return None if is_sound else config.required(field, text, _URL_TEXT)


def _user_problem(raw: _Raw) -> config.FieldProblem | None:
    user, _, profile = raw.username.text.rpartition("@")
    if user and profile and raw.username.text.isprintable():
        return None
    return config.required(raw.username.field, raw.username.text, _USER_TEXT)


def _others(
    raw: _Raw, now: datetime.datetime
) -> tuple[config.FieldProblem | None, ...]:
    password = None
    if not raw.password.text:
        password = config.not_set(raw.password.field, "the password of the user")
    insecure = None
    if raw.insecure.text.lower() not in (*_TRUE, *_FALSE):
        expected = "one of true, false"
        insecure = config.FieldProblem(raw.insecure.field, raw.insecure.text, expected)
    return password, insecure, _ca_problem(raw.ca, now)


def _ca_problem(ca: _Value, now: datetime.datetime) -> config.FieldProblem | None:
    if not ca.text:
        return None
    if _BEGIN not in ca.text:
        is_encoded = _BEGIN in _decoded(ca.text)
        problem = "base64 of certificates" if is_encoded else "no certificate"
        return config.stated(ca.field, f"{problem}: must be {_CA_TEXT}")
    try:
        expiry = ca_expiry(ca.text)
    except ValueError:
        text = f"a certificate cannot be read: must be {_CA_TEXT}"
        return config.stated(ca.field, text)
    if expiry <= now:
        text = f"the certificate expired at {expiry:%Y-%m-%dT%H:%M:%SZ}"
        return config.stated(ca.field, text)
    return None


def _decoded(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def ca_expiry(pem: str) -> datetime.datetime:
    """Return when the last of some certificates expires.

    Raises:
        ValueError: one of them cannot be read.
    """
    certificates = [
        x509.load_pem_x509_certificate(text.encode()) for text in _PEM.findall(pem)
    ]
    if not certificates:
        raise ValueError("no complete certificate")
    return max(row.not_valid_after_utc for row in certificates)


def watched(env: Mapping[str, str]) -> frozenset[pathlib.Path]:
    """Return the files that an environment names, before any of them is read."""
    paths = [env.get(name, "") for name in FILES.values()]
    return frozenset(
        pathlib.Path(path) for path in (*paths, env.get(OVIRT_CONFIG, "")) if path
    )


def is_in_environment(env: Mapping[str, str]) -> bool:
    """Report whether the variables of an environment are a configuration."""
    return any(env.get(name) for name in (URL, FILES[URL], OVIRT_CONFIG))


def of_secret(env: Mapping[str, str]) -> Mapping[str, str]:
    """Return variables whose values are keys of a Secret; empty: they have no URL.

    Paths in the Pod, of files with the same values, are omitted.
    """
    if not env.get(URL):
        return {}
    paths = {path for name, path in FILES.items() if name in env} | {OVIRT_CONFIG}
    return {name: value for name, value in env.items() if name not in paths}
