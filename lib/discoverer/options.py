"""Options of cloud-data-discoverer: flags and environment variables."""

import dataclasses
import datetime
import re
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from lib.daemon import access, common_flags
from lib.discovery import model, provider, storage_classes
from lib.discovery.provider import Provider
from lib.process import command_line, config, decoding, flags, kinds, serving
from lib.process.flags import Flag

T = TypeVar("T")

SECRET_NAME_MAX = 253
_SECRET_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")

PERIOD = Flag(
    "discovery-period",
    kinds.duration(1),
    3600.0,
    "Time between two cycles; also DISCOVERY_PERIOD.",
)
LISTEN_ADDRESS = Flag(
    "listen-address",
    kinds.TEXT,
    "127.0.0.1:9000",
    "Loopback address of plain HTTP, none if empty; also LISTEN_ADDRESS.",
    group=flags.SERVING,
)
KUBECONFIG = Flag(
    "kubeconfig",
    kinds.TEXT,
    "",
    "Path of the kubeconfig; also KUBECONFIG; empty: the service account of the Pod.",
)
CLOUD_CONFIG = Flag(
    "cloud-config",
    kinds.TEXT,
    "",
    "File with the credentials of the cloud; empty: variables of the environment.",
)
SECURE_PORT = Flag(
    "secure-port",
    kinds.integer(0, 65535),
    0,
    "HTTPS port of probes and metrics, for clusters without kube-rbac-proxy; 0: none.",
    group=flags.SERVING,
)
ORPHAN_MIN_AGE = Flag(
    "orphaned-disk-min-age",
    kinds.duration(0),
    model.ORPHAN_MIN_AGE.total_seconds(),
    "Minimum age of a volume without a PersistentVolume to be reported as orphaned.",
    group=flags.DISCOVERY,
)
MANAGE_CLASSES = Flag(
    "manage-storage-classes",
    kinds.BOOLEAN,
    False,
    "Keep a StorageClass for each volume type.",
    group=flags.DISCOVERY,
)
EXCLUDE = Flag(
    "storage-class-exclude",
    kinds.ARRAY,
    (),
    "Regular expression; classes whose whole name matches are not made. Repeatable.",
    group=flags.DISCOVERY,
)
DATA_SECRET = Flag(
    "discovery-data-secret",
    kinds.TEXT,
    provider.DATA_SECRET,
    "Secret in kube-system with the discovery data; another one for each cloud of a"
    " hybrid cluster.",
    group=flags.DISCOVERY,
)
DEFAULT_CLASS = Flag(
    "default-storage-class",
    kinds.TEXT,
    "",
    "The default class; the one that is it already, else the first, if empty.",
    group=flags.DISCOVERY,
)


def cloud(names: tuple[str, ...]) -> Flag[str]:
    """Return the flag that names the kind of cloud; it has no default."""
    text = f"Cloud to read: {', '.join(names)}."
    return Flag("cloud", kinds.TEXT, "", text, is_required=True)


def access_deployment(default: str) -> Flag[str]:
    """Return the flag with the Deployment for the authorization of metrics."""
    return Flag(
        "access-deployment",
        kinds.TEXT,
        default,
        "Deployment, as namespace/name, of which clients need the subresource"
        " prometheus-metrics to read metrics.",
        group=flags.SERVING,
    )


def table(names: tuple[str, ...], deployment: str) -> tuple[Flag[object], ...]:
    """Return all flags. names: of the clouds. deployment: of the first, as its default.

    With another cloud the default is that of its own module.
    """
    return (
        cloud(names),
        CLOUD_CONFIG,
        PERIOD,
        LISTEN_ADDRESS,
        KUBECONFIG,
        SECURE_PORT,
        common_flags.BIND_ADDRESS,
        common_flags.TLS_CERT,
        common_flags.TLS_KEY,
        access_deployment(deployment),
        ORPHAN_MIN_AGE,
        MANAGE_CLASSES,
        EXCLUDE,
        DEFAULT_CLASS,
        DATA_SECRET,
        common_flags.LOGGING_FORMAT,
        command_line.VERBOSITY,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Listen:
    """Address to serve on; port 0: not served."""

    address: str
    port: int


@dataclasses.dataclass(frozen=True, slots=True)
class DiscovererOptions:
    """Validated options. plain: HTTP on loopback. secure: HTTPS with authorization."""

    period_s: float
    kubeconfig: str
    plain: Listen
    secure: Listen
    tls_files: tuple[str, str]
    guarded_by: access.AccessResource
    settings: model.DiscoverySettings
    verbosity: int
    values: flags.Values


def read(
    values: flags.Values, env: Mapping[str, str], of: Provider
) -> DiscovererOptions:
    """Validate the options; a flag overrides its environment variable.

    of: the requested provider.

    Raises:
        ConfigError: with every problem.
    """
    settings = _FlagsAndEnvironment(values, env)
    problems = settings.problems
    period_s = settings.get(PERIOD, "DISCOVERY_PERIOD")
    options = DiscovererOptions(
        period_s=period_s,
        kubeconfig=_file(
            settings.get(KUBECONFIG, "KUBECONFIG"), "kubeconfig", problems
        ),
        plain=_plain(settings.get(LISTEN_ADDRESS, "LISTEN_ADDRESS"), problems),
        secure=Listen(values[common_flags.BIND_ADDRESS], values[SECURE_PORT]),
        tls_files=_pair(values, problems),
        guarded_by=_resource(_deployment(values, of), problems),
        settings=model.DiscoverySettings(
            module_config=_module_config(env.get("MODULE_CONFIG", ""), problems),
            cluster_id=env.get("CLUSTER_UUID", ""),
            orphan_min_age=datetime.timedelta(seconds=values[ORPHAN_MIN_AGE]),
            period_s=period_s,
            manages_classes=values[MANAGE_CLASSES],
            provider=dataclasses.replace(of, data_secret=_secret(values, problems)),
            rules=_rules(values, problems),
        ),
        verbosity=settings.get(command_line.VERBOSITY, "LOGGER_LEVEL"),
        values=values,
    )
    config.require(problems)
    return options


def _deployment(values: flags.Values, of: Provider) -> str:
    """Return the Deployment of the flag, else that of the cloud's module."""
    flag = access_deployment(of.access_deployment)
    return values[flag] if values.is_given(flag) else of.access_deployment


def kubeconfig(values: flags.Values, env: Mapping[str, str]) -> str:
    """Return the path of the kubeconfig: of its flag or environment variable."""
    return _FlagsAndEnvironment(values, env).get(KUBECONFIG, "KUBECONFIG")


def certificate_files(values: flags.Values) -> tuple[str, str]:
    """Return the files of certificate and key, empty where not set."""
    return values[common_flags.TLS_CERT], values[common_flags.TLS_KEY]


class _FlagsAndEnvironment:
    """Values of flags; of an environment variable where the flag is not set."""

    def __init__(self, values: flags.Values, env: Mapping[str, str]) -> None:
        self._values = values
        self._env = env
        self.problems: list[config.FieldProblem] = []

    def get(self, flag: Flag[T], variable: str) -> T:
        text = self._env.get(variable, "")
        if self._values.is_given(flag) or not text:
            return self._values[flag]
        try:
            return flag.kind.read(text)
        except ValueError:
            problem = config.FieldProblem(variable, text, flag.kind.expected)
            self.problems.append(problem)
            return flag.default


def _file(path: str, name: str, problems: list[config.FieldProblem]) -> str:
    if path and (problem := config.unusable_file(f"--{name}", path)):
        problems.append(problem)
    return path


def _plain(text: str, problems: list[config.FieldProblem]) -> Listen:
    if not text:
        return Listen("", 0)
    host, _, port = text.rpartition(":")
    host = "127.0.0.1" if host == "localhost" else host.strip("[]")
    if not serving.is_loopback(host) or not port.isdecimal() or int(port) > 65535:
        right = (
            "a loopback address with a port, such as 127.0.0.1:8081;"
            " for other addresses use --secure-port"
        )
        problems.append(config.FieldProblem("--listen-address", text, right))
        return Listen("", 0)
    return Listen(host, int(port))


def _pair(values: flags.Values, problems: list[config.FieldProblem]) -> tuple[str, str]:
    pair = (values[common_flags.TLS_CERT], values[common_flags.TLS_KEY])
    for flag, other, path in zip(
        (common_flags.TLS_CERT, common_flags.TLS_KEY),
        (common_flags.TLS_KEY, common_flags.TLS_CERT),
        pair,
        strict=True,
    ):
        if not path and any(pair):
            expected = f"the path of a file, since --{other.name} is set"
            problems.append(config.not_set(f"--{flag.name}", expected))
        _file(path, flag.name, problems)
    return pair


def _resource(text: str, problems: list[config.FieldProblem]) -> access.AccessResource:
    namespace, _, name = text.partition("/")
    if not namespace or not name or "/" in name:
        problems.append(
            config.FieldProblem(
                "--access-deployment", text, "namespace/name of a Deployment"
            )
        )
    return access.AccessResource(
        namespace, "apps", "v1", "deployments", "prometheus-metrics", name
    )


def _module_config(
    text: str, problems: list[config.FieldProblem]
) -> Mapping[str, object]:
    if not text:
        return {}
    try:
        return decoding.decode(text, dict[str, object])
    except msgspec.DecodeError:
        problems.append(config.FieldProblem("MODULE_CONFIG", None, "a JSON object"))
        return {}


def _secret(values: flags.Values, problems: list[config.FieldProblem]) -> str:
    name = values[DATA_SECRET]
    if not _SECRET_NAME.fullmatch(name) or len(name) > SECRET_NAME_MAX:
        expected = "the name of a Secret"
        problems.append(config.FieldProblem(f"--{DATA_SECRET.name}", name, expected))
    return name


def _rules(
    values: flags.Values, problems: list[config.FieldProblem]
) -> storage_classes.StorageClassRules:
    try:
        return storage_classes.read_rules(values[EXCLUDE], values[DEFAULT_CLASS])
    except config.ConfigError as error:
        invalid = [p for p in error.problems if isinstance(p, config.FieldProblem)]
        flag = f"--{EXCLUDE.name}"
        problems += [dataclasses.replace(problem, field=flag) for problem in invalid]
        return storage_classes.StorageClassRules()
