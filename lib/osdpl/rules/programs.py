"""Rules for Keystone, Horizon, Nova, Barbican and Ironic."""

from collections.abc import Iterator

from lib.osdpl.rules.rule import (
    Change,
    Rule,
    Tree,
    at,
    below,
    is_before,
    problem,
    rejected,
    required,
    required_fields,
)
from lib.process.config import FieldProblem

_KEYSTONE = "features.keystone"
_DOMAINS = f"{_KEYSTONE}.domain_specific_configuration"
_OPENID = f"{_KEYSTONE}.federation.openid"
_HOST_MODELS = ("host-model", "host-passthrough")


def _vault(change: Change) -> Iterator[FieldProblem]:
    path = "features.barbican.backends.vault"
    vault = below(change.spec, path)
    is_old = is_before(change, "victoria")
    if vault.get("enabled") and vault.get("namespace") and is_old:
        text = "not supported before OpenStack victoria"
        yield rejected(f"{path}.namespace", text)


def _themes(spec: Tree) -> Iterator[tuple[str, Tree]]:
    path = "features.horizon.themes"
    for number, theme in enumerate(at(spec, path) or ()):
        if theme.get("enabled", True):
            yield f"{path}[{number}]", theme


def _ironic(change: Change) -> Iterator[FieldProblem]:
    if not below(change.spec, "features.ironic"):
        yield required("features.ironic", "set with the service baremetal")


def _keycloak_url(change: Change) -> Iterator[FieldProblem]:
    keycloak = below(change.spec, f"{_KEYSTONE}.keycloak")
    if keycloak.get("enabled") and not keycloak.get("url"):
        yield required(f"{_KEYSTONE}.keycloak.url", "an address")


def _one_kind_of_domains(change: Change) -> Iterator[FieldProblem]:
    domains = below(change.spec, _DOMAINS)
    if domains.get("domains") and domains.get("ks_domains"):
        yield rejected(_DOMAINS, "domains: must not be set together with ks_domains")


def _ks_domains(spec: Tree) -> Iterator[tuple[str, Tree]]:
    for name, domain in below(spec, f"{_DOMAINS}.ks_domains").items():
        yield f"{_DOMAINS}.ks_domains.{name}", (
            domain if isinstance(domain, dict) else {}
        )


def _one_federation(change: Change) -> Iterator[FieldProblem]:
    path = f"{_KEYSTONE}.keycloak.enabled"
    if at(change.spec, path) and at(change.spec, f"{_OPENID}.enabled"):
        yield problem(path, True, "false with federation.openid enabled")


def _one_provider(change: Change) -> Iterator[FieldProblem]:
    openid = below(change.spec, _OPENID)
    providers = below(openid, "providers")
    enabled = sorted(
        n for n, provider in providers.items() if provider.get("enabled", True)
    )
    if openid.get("oidc_auth_type") == "oauth20" and len(enabled) > 1:
        expected = "one enabled provider with oidc_auth_type oauth20"
        yield problem(f"{_OPENID}.providers", ", ".join(enabled), expected)


def _encryption(change: Change) -> Iterator[FieldProblem]:
    path = "features.nova.images"
    images = below(change.spec, path)
    if at(images, "encryption.enabled") and images.get("backend") != "lvm":
        expected = f"false, or {path}.backend lvm"
        yield problem(f"{path}.encryption.enabled", True, expected)


def _cpu_models(change: Change) -> tuple[str, ...]:
    text = str(at(change.spec, "features.nova.vcpu_type") or "")
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _one_host_model(change: Change) -> Iterator[FieldProblem]:
    models = _cpu_models(change)
    if len(models) > 1 and set(models) & set(_HOST_MODELS):
        expected = f"{' or '.join(_HOST_MODELS)} alone"
        yield problem("features.nova.vcpu_type", ",".join(models), expected)


def _several_models(change: Change) -> Iterator[FieldProblem]:
    models = _cpu_models(change)
    if len(models) > 1 and is_before(change, "train"):
        expected = "one model before OpenStack train"
        yield problem("features.nova.vcpu_type", ",".join(models), expected)


_theme = required_fields("horizon theme", "dashboard", _themes)
_domain = required_fields("keystone domain", "identity", _ks_domains)

RULES: tuple[Rule, ...] = (
    Rule("barbican: namespace of vault since victoria", "key-manager", _vault),
    _theme("url", "an address"),
    _theme("description", "a text"),
    _theme("sha256summ", "a SHA-256 sum"),
    _theme("name", "a name"),
    Rule("ironic: settings of baremetal", "baremetal", _ironic),
    Rule("keystone: address of keycloak", "identity", _keycloak_url),
    Rule("keystone: domains or ks_domains", "identity", _one_kind_of_domains),
    _domain("config", "an object"),
    _domain("enabled", "true or false"),
    Rule("keystone: keycloak or federation", "identity", _one_federation),
    Rule("keystone: one provider with oauth20", "identity", _one_provider),
    Rule("nova: encryption with lvm only", "compute", _encryption),
    Rule("nova: a model of the host alone", "compute", _one_host_model),
    Rule("nova: several models since train", "compute", _several_models),
)
