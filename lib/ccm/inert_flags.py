"""The reference's flags that are accepted and do nothing here, each with its reason.

Source: k8s.io/cloud-provider v0.36 `--help`.
"""

from lib.process import command_line, kinds
from lib.process.flags import Flag

_LISTS = "lists are shared and watches resumed, so nothing is listed again by time"
_ONE_SERVER = "HTTPS is served by Python's standard library"
_NO_LOOKUP = "client certificates are validated by --client-ca-file only"
_NO_PROXIES = "request-header authentication is not supported"
_NO_WEBHOOKS = "no cloud provider has webhooks to serve"
_ONE_STREAM = "logs are one stream of lines"
_OWN_GATES = "they switch parts of the Go program"
_ONE_ACCOUNT = "the kubeconfig given by --kubeconfig is used"

_REQUEST_HEADERS = (
    ("requestheader-allowed-names", ()),
    ("requestheader-extra-headers-prefix", ("x-remote-extra-",)),
    ("requestheader-group-headers", ("x-remote-group",)),
    ("requestheader-uid-headers", ()),
    ("requestheader-username-headers", ("x-remote-user",)),
)


def _text(name: str, reason: str, default: str = "") -> Flag[object]:
    return Flag(name, kinds.TEXT, default, "Ignored.", no_effect=reason)


def _boolean(name: str, reason: str, *, default: bool = False) -> Flag[object]:
    return Flag(name, kinds.BOOLEAN, default, "Ignored.", no_effect=reason)


def _integer(name: str, reason: str, default: int = 0) -> Flag[object]:
    return Flag(name, kinds.integer(), default, "Ignored.", no_effect=reason)


def _duration(name: str, reason: str, default_s: float = 0.0) -> Flag[object]:
    return Flag(name, kinds.DURATION, default_s, "Ignored.", no_effect=reason)


def _list(name: str, reason: str, default: tuple[str, ...] = ()) -> Flag[object]:
    return Flag(name, kinds.LIST, default, "Ignored.", no_effect=reason)


INERT: tuple[Flag[object], ...] = (
    _boolean("allocate-node-cidrs", "kube-controller-manager allocates them"),
    _boolean("allow-untagged-cloud", "deprecated; ignored by the reference, too"),
    _text("authentication-kubeconfig", _ONE_ACCOUNT),
    _boolean("authentication-skip-lookup", _NO_LOOKUP),
    _boolean("authentication-tolerate-lookup-failure", _NO_LOOKUP),
    _text("authorization-kubeconfig", _ONE_ACCOUNT),
    _text("cert-dir", "a certificate of our own is kept in memory"),
    _text("cidr-allocator-type", "kube-controller-manager allocates", "RangeAllocator"),
    _integer("concurrent-node-status-updates", "--concurrent-node-syncs covers them"),
    _boolean("contention-profiling", "it profiles the Go program"),
    _duration("controller-start-interval", "all controllers share one start"),
    _boolean("disable-http2-serving", _ONE_SERVER),
    _boolean("enable-leader-migration", "there is no older controller to migrate from"),
    _text("external-cloud-volume-plugin", "it is kube-controller-manager's"),
    Flag(
        "feature-gates",
        kinds.BOOLEAN_MAP,
        {},
        "Feature gates.",
        no_effect=_OWN_GATES,
    ),
    _integer("http2-max-streams-per-connection", _ONE_SERVER),
    _integer("kube-api-burst", "requests are few and bounded by the workers", 30),
    _text(
        "kube-api-content-type",
        "requests are JSON",
        "application/vnd.kubernetes.protobuf",
    ),
    _text("kube-api-qps", "requests are few and bounded by the workers", "20"),
    _text("leader-migration-config", "there is no older controller to migrate from"),
    _duration("log-flush-frequency", "every line is written immediately", 5.0),
    _text("log-json-info-buffer-size", _ONE_STREAM, "0"),
    _boolean("log-json-split-stream", _ONE_STREAM),
    _text("log-text-info-buffer-size", _ONE_STREAM, "0"),
    _boolean("log-text-split-stream", _ONE_STREAM),
    _duration("min-resync-period", _LISTS, 12 * 3600.0),
    _duration("node-sync-period", "deprecated; ignored by the reference, too"),
    _boolean("permit-address-sharing", _ONE_SERVER),
    _boolean("permit-port-sharing", _ONE_SERVER),
    _boolean("profiling", "it profiles the Go program", default=True),
    *(_list(name, _NO_PROXIES, default) for name, default in _REQUEST_HEADERS),
    _text("requestheader-client-ca-file", _NO_PROXIES),
    _list("tls-curve-preferences", _ONE_SERVER),
    _list("tls-sni-cert-key", "one certificate serves all names"),
    _boolean("use-service-account-credentials", "one ServiceAccount serves all"),
    _text("webhook-bind-address", _NO_WEBHOOKS, "0.0.0.0"),  # noqa: S104
    _text("webhook-cert-dir", _NO_WEBHOOKS),
    _boolean("webhook-disable-http2-serving", _NO_WEBHOOKS),
    _integer("webhook-secure-port", _NO_WEBHOOKS, 10260),
    _text("webhook-tls-cert-file", _NO_WEBHOOKS),
    _list("webhook-tls-cipher-suites", _NO_WEBHOOKS),
    _list("webhook-tls-curve-preferences", _NO_WEBHOOKS),
    _text("webhook-tls-min-version", _NO_WEBHOOKS),
    _text("webhook-tls-private-key-file", _NO_WEBHOOKS),
    _list("webhook-tls-sni-cert-key", _NO_WEBHOOKS),
    _list("webhooks", _NO_WEBHOOKS),
    command_line.VMODULE,
)
