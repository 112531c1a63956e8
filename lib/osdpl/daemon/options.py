"""Flags of osdpl-controller."""

import dataclasses
import pathlib
import tempfile

from lib.daemon import access, common_flags
from lib.helm import errors as helm_errors
from lib.helm import policy, source_access, sources
from lib.osdpl.api import model
from lib.process import command_line, config, flags, kinds, start
from lib.process.flags import Flag

NAMESPACE = Flag(
    "namespace",
    kinds.TEXT,
    "openstack",
    "Namespace of the OpenStackDeployment that is served.",
)
HELM = Flag(
    "helm",
    kinds.TEXT,
    "helm",
    "The helm program: a name on PATH or a path.",
    group=flags.HELM,
)
HELM_TIMEOUT = Flag(
    "helm-timeout",
    kinds.duration(1),
    600.0,
    "How long helm waits for each hook Job.",
    group=flags.HELM,
)
SLOTS = Flag(
    "helm-slots",
    kinds.integer(1, 64),
    4,
    "Helm runs at the same time.",
    group=flags.HELM,
)
CHART_CACHE = Flag(
    "chart-cache",
    kinds.TEXT,
    "",
    "Folder for charts; below the temporary folder if empty.",
    group=flags.HELM,
)
CHART_SOURCE = Flag(
    "chart-source",
    kinds.TEXT,
    "",
    "Source of charts for a spec that names no repository: http(s)://, oci:// or a"
    " folder.",
    group=flags.HELM,
)
ALLOWED_CHART_SOURCES = Flag(
    "allowed-chart-sources",
    kinds.LIST,
    (),
    "Addresses that a spec may name as source of charts, and all below them; *: any"
    " that is neither loopback nor link-local. Default: that of --chart-source, or *"
    " without one.",
    group=flags.HELM,
)
CHART_SOURCE_ACCESS = Flag(
    "chart-source-access",
    kinds.TEXT,
    "",
    "Folder with .dockerconfigjson (accounts of sources of charts, by host, sent by"
    " HTTPS only) and ca.crt (their CA certificate); read again for each request.",
    group=flags.HELM,
)
SETTINGS = Flag(
    "settings",
    kinds.TEXT,
    "",
    "Folder with *.ini and conf.d/*.ini as the reference has them; read again when they"
    " change. The ConfigMap rockoon-config overrides them.",
)
SECURE_PORT = Flag(
    "secure-port",
    kinds.integer(0, 65535),
    10290,
    "HTTPS port of probes and metrics.",
    group=flags.SERVING,
)
WEBHOOK_PORT = Flag(
    "webhook-port",
    kinds.integer(0, 65535),
    0,
    "HTTPS port of the admission webhook; 0: no webhook.",
    group=flags.SERVING,
)
LEASE_NAME = Flag(
    "leader-elect-resource-name",
    kinds.TEXT,
    "osdpl-controller",
    "Name of the Lease.",
    group=flags.LEADER_ELECTION,
)

FLAGS: tuple[Flag[object], ...] = (
    common_flags.KUBECONFIG,
    NAMESPACE,
    HELM,
    HELM_TIMEOUT,
    SLOTS,
    CHART_CACHE,
    CHART_SOURCE,
    ALLOWED_CHART_SOURCES,
    CHART_SOURCE_ACCESS,
    SETTINGS,
    SECURE_PORT,
    WEBHOOK_PORT,
    common_flags.BIND_ADDRESS,
    common_flags.TLS_CERT,
    common_flags.TLS_KEY,
    common_flags.LEADER_ELECT,
    LEASE_NAME,
    common_flags.LOGGING_FORMAT,
    command_line.VERBOSITY,
)

CACHE_NAME = "osdpl-controller"


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """All of it, checked.

    source: None: the spec has to name a repository. settings: None: no ini files.
    """

    kubeconfig: str
    namespace: str
    helm: str
    helm_timeout_s: float
    slots: int
    chart_cache: pathlib.Path
    source: model.Source | None
    chart_policy: policy.Policy
    chart_access: source_access.SourceAccess
    settings: pathlib.Path | None
    address: str
    port: int
    webhook_port: int
    tls_files: tuple[str, str]
    lease: str | None
    values: flags.Values
    identity: str = dataclasses.field(default_factory=start.new_identity)

    @property
    def guarded_by(self) -> access.AccessResource:
        """Object in whose place the metrics are guarded."""
        name = "osdpl-controller"
        return access.AccessResource(
            self.namespace, "apps", "v1", "deployments", "prometheus-metrics", name
        )


def read(values: flags.Values) -> Options:
    """Validate the flags.

    Raises:
        ConfigError: with every problem.
    """
    problems: list[config.FieldProblem] = []
    folder = values[CHART_CACHE] or str(
        pathlib.Path(tempfile.gettempdir()) / CACHE_NAME
    )
    if not values[NAMESPACE]:
        problems.append(config.not_set("--namespace", "the name of a namespace"))
    options = Options(
        kubeconfig=_file(values[common_flags.KUBECONFIG], "--kubeconfig", problems),
        namespace=values[NAMESPACE],
        helm=values[HELM],
        helm_timeout_s=values[HELM_TIMEOUT],
        slots=values[SLOTS],
        chart_cache=pathlib.Path(folder),
        source=_source(values[CHART_SOURCE], problems),
        chart_policy=_policy(values, problems),
        chart_access=source_access.SourceAccess(
            _folder(values[CHART_SOURCE_ACCESS], CHART_SOURCE_ACCESS, problems)
        ),
        settings=_folder(values[SETTINGS], SETTINGS, problems),
        address=values[common_flags.BIND_ADDRESS],
        port=values[SECURE_PORT],
        webhook_port=values[WEBHOOK_PORT],
        tls_files=_pair(values, problems),
        lease=values[LEASE_NAME] if values[common_flags.LEADER_ELECT] else None,
        values=values,
    )
    config.require(problems)
    return options


def _folder(
    path: str, flag: Flag[str], problems: list[config.FieldProblem]
) -> pathlib.Path | None:
    if path and not pathlib.Path(path).is_dir():
        expected = "an existing directory"
        problems.append(config.FieldProblem(f"--{flag.name}", path, expected))
    return pathlib.Path(path) if path else None


def _file(path: str, name: str, problems: list[config.FieldProblem]) -> str:
    if path and (problem := config.unusable_file(name, path)):
        problems.append(problem)
    return path


def _pair(values: flags.Values, problems: list[config.FieldProblem]) -> tuple[str, str]:
    pair = (values[common_flags.TLS_CERT], values[common_flags.TLS_KEY])
    for flag, path in zip(
        (common_flags.TLS_CERT, common_flags.TLS_KEY), pair, strict=True
    ):
        name = f"--{flag.name}"
        if not path and any(pair):
            expected = "the path of a file, since the other one of the pair is set"
            problems.append(config.not_set(name, expected))
        _file(path, name, problems)
    return pair


def _policy(values: flags.Values, problems: list[config.FieldProblem]) -> policy.Policy:
    """Return what a spec may name: the listed sources and the default one, or any."""
    listed: tuple[str, ...] = values[ALLOWED_CHART_SOURCES]
    name = f"--{ALLOWED_CHART_SOURCES.name}"
    for url in listed:
        if url != policy.ANY:
            _is_source(url, name, problems)
    default = values[CHART_SOURCE]
    allowed = (*listed, *([default] if default else []))
    return policy.Policy(allowed or (policy.ANY,))


def _source(url: str, problems: list[config.FieldProblem]) -> model.Source | None:
    if not url:
        return None
    _is_source(url, "--chart-source", problems)
    return model.Source(name="default", url=url)


def _is_source(url: str, flag: str, problems: list[config.FieldProblem]) -> None:
    try:
        sources.open_source(url)
    except helm_errors.SourceError:
        right = "http(s)://host/path, oci://host/path or an absolute path, no password"
        problems.append(config.FieldProblem(flag, None, right))
