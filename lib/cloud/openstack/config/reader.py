"""Reading cloud.conf, the file that the reference's users have in their clusters."""

import ipaddress
import pathlib
import re
from collections.abc import Callable, Collection, Mapping

from lib.cloud.openstack.config import clouds_yaml, gcfg, settings
from lib.cloud.openstack.config.section_reader import (
    SECRETS,
    ConfigFindings,
    SectionReader,
    shown,
    unknown,
)
from lib.cloud.openstack.config.settings import (
    BlockStorage,
    CloudConfError,
    Config,
    Credentials,
    LoadBalancer,
    LoadBalancerClass,
    Metadata,
    Networking,
)

ReadFile = Callable[[pathlib.Path], str | None]
"""Returns the text of a file; None if it does not exist."""

_LB_PROVIDERS = ("amphora", "octavia", "ovn", "f5", "amphorav2")
_CONTAINER_STORES = ("barbican", "external")
_SOURCES = ("configDrive", "metadataService")
_ENDPOINT_TYPES = ("public", "internal", "admin")
SECTIONS = frozenset(
    {"global", "networking", "route", "metadata", "loadbalancer", "blockstorage"}
)

_CLOUDS_YAML = re.compile(r"^clouds:\s*(#.*)?$", re.MULTILINE)
_YAML_HINT = (
    "; this is a clouds.yaml, which cloud.conf names with use-clouds = true and"
    " clouds-file in [Global]"
)


def read_file(path: pathlib.Path) -> str | None:
    """Read a text file from disk; None when there is none."""
    try:
        return path.read_text()
    except (FileNotFoundError, NotADirectoryError):
        return None


def read(
    text: str,
    env: Mapping[str, str],
    files: ReadFile = read_file,
    cloud: str = "",
    used: Collection[str] = SECTIONS,
) -> settings.Config:
    """Read cloud.conf, and clouds.yaml where it refers to one.

    cloud: which [Global "cloud"] to use; empty: the plain [Global]. used: the sections
    to read, in lower case; others have their defaults, whatever is in them. env:
    OS_CCM_REGIONAL and OCCM_WAIT_LB_ACTIVE_STEPS count, and with use-clouds what says
    where clouds.yaml is (OS_CLIENT_CONFIG_FILE, HOME); all else is ignored.

    Raises:
        ConfigError: with all problems together.

    Source: kubernetes/cloud-provider-openstack docs/openstack-cloud-controller-manager
    and pkg/openstack/openstack.go (ReadConfig), pkg/client/client.go.
    """
    try:
        sections = gcfg.parse(text)
    except gcfg.SyntaxFault as fault:
        hint = _YAML_HINT if _CLOUDS_YAML.search(text) else ""
        raise CloudConfError((f"{fault}{hint}",)) from None
    findings = ConfigFindings()
    reader = _Sections(sections, findings, used)
    if cloud:
        reader.require("Global", cloud)
    classes = {
        section.subsection: _class(SectionReader(section, findings))
        for section in sections
        if section.name.lower() == "loadbalancerclass" and "loadbalancer" in used
    }
    router_id, pairs_only = _route(reader.one("Route"))
    config = Config(
        credentials=_credentials(reader.one("Global", cloud), env, files),
        networking=_networking(reader.one("Networking")),
        router_id=router_id,
        address_pairs_only=pairs_only,
        metadata=_metadata(reader.one("Metadata")),
        load_balancer=_load_balancer(
            reader.one("LoadBalancer"), classes, _active_steps(env, findings)
        ),
        block_storage=_block_storage(reader.one("BlockStorage")),
        regional=env.get("OS_CCM_REGIONAL") == "true",
        warnings=tuple(findings.warnings),
    )
    if findings.problems:
        raise CloudConfError((*findings.problems, *findings.unknown))
    return config


def read_node(text: str) -> settings.NodeConfig:
    """Read what a node needs of cloud.conf: [Metadata] and [BlockStorage].

    All else is ignored; whether it holds credentials is reported.

    Raises:
        ConfigError: with all problems together.
    """
    try:
        sections = gcfg.parse(text)
    except gcfg.SyntaxFault as fault:
        raise CloudConfError((str(fault),)) from None
    findings = ConfigFindings()
    reader = _Sections(sections, findings, ("metadata", "blockstorage"))
    limit = reader.one("BlockStorage").text("node-volume-attach-limit")
    config = settings.NodeConfig(
        search_order=_metadata(reader.one("Metadata")).search_order,
        attach_limit=_attach_limit(limit, findings),
        has_credentials=any(
            SECRETS & section.values.keys()
            for section in sections
            if section.name.lower() == "global"
        ),
    )
    if findings.problems:
        raise CloudConfError(tuple(findings.problems))
    return config


def _attach_limit(text: str, findings: ConfigFindings) -> int | None:
    """Parse the limit as the reference does: out of range means the maximum.

    Source: kubernetes/cloud-provider-openstack pkg/csi/cinder/openstack
    (GetMaxVolLimit).
    """
    most = BlockStorage().node_volume_attach_limit
    if not text:
        return None
    try:
        limit = int(text)
    except ValueError:
        field = "[BlockStorage] node-volume-attach-limit"
        problem = f"invalid value {shown(text)}: must be a whole number"
        findings.problems.append(f"{field}: {problem}")
        return None
    if limit == 0:
        return None
    return limit if 0 < limit <= most else most


class _Sections:
    """Returns each section by name, and reports those that nothing reads."""

    def __init__(
        self,
        sections: tuple[gcfg.Section, ...],
        findings: ConfigFindings,
        used: Collection[str],
    ) -> None:
        self._findings = findings
        self._used = used
        self._by_name: dict[tuple[str, str], gcfg.Section] = {}
        for section in sections:
            name = section.name.lower()
            if name == "global" or (name in SECTIONS and not section.subsection):
                self._by_name[name, section.subsection] = section
            elif name != "loadbalancerclass":
                sub = f' "{section.subsection}"' if section.subsection else ""
                ending = unknown("section", name, SECTIONS)
                findings.warnings.append(f"[{section.name}{sub}]: {ending}")

    def require(self, name: str, sub: str) -> None:
        """Report a section that is missing."""
        if (name.lower(), sub) not in self._by_name:
            subs = [f'[{name} "{at[1]}"]' for at in self._by_name if at[1]]
            hint = f": must be one of {', '.join(subs)}" if subs else ""
            self._findings.problems.append(f'[{name} "{sub}"]: not found{hint}')

    def one(self, name: str, sub: str = "") -> SectionReader:
        section = gcfg.Section(name, sub, {})
        if name.lower() in self._used:
            section = self._by_name.get((name.lower(), sub), section)
        return SectionReader(section, self._findings)


def _credentials(
    section: SectionReader, env: Mapping[str, str], files: ReadFile
) -> Credentials:
    values = {key: section.text(key) for key in clouds_yaml.CLOUD_CONF_KEYS}
    insecure = section.text("tls-insecure")
    if insecure not in ("", "true", "false"):
        section.reject("tls-insecure", insecure, "true or false", "using false")
    use_clouds = section.boolean("use-clouds", clouds_yaml.USE_CLOUDS)
    clouds_file = section.text("clouds-file", clouds_yaml.CLOUDS_FILE)
    cloud = section.text("cloud", clouds_yaml.CLOUD)
    section.finish()
    if use_clouds:
        place = clouds_yaml.CloudsFile(clouds_file, cloud, env)
        try:
            values = clouds_yaml.fill(values, place, files)
        except clouds_yaml.CloudsError as error:
            section.problem(error.key, error.value, error.right)
            return Credentials()
    endpoint_type = values["os-endpoint-type"].removesuffix("URL") or "public"
    if endpoint_type not in _ENDPOINT_TYPES:
        right = "one of " + ", ".join(_ENDPOINT_TYPES)
        section.problem("os-endpoint-type", endpoint_type, right)
    _judge(values, section)
    fields = {
        key.replace("-", "_"): value
        for key, value in values.items()
        if key != "os-endpoint-type"
    }
    return Credentials(
        **fields, endpoint_type=endpoint_type, tls_insecure=insecure == "true"
    )


def _judge(values: Mapping[str, str], section: SectionReader) -> None:
    """Report what Keystone would refuse anyway.

    Source: gophercloud auth_options.go (ToTokenV3CreateMap, ToTokenV3ScopeMap).
    """
    if not values["auth-url"].startswith(("http://", "https://")):
        right = "the URL of Keystone, such as https://keystone.example:5000/v3"
        section.problem("auth-url", values["auth-url"], right)
    if bool(values["cert-file"]) != bool(values["key-file"]):
        section.warn("cert-file and key-file: must be set together; ignored")
    any_domain = values["domain-id"] or values["domain-name"]
    user_domain = values["user-domain-id"] or values["user-domain-name"] or any_domain
    by_secret = bool(values["application-credential-secret"])
    _judge_ways(values, section)
    if not values["token"]:
        _judge_user(values, section, bool(user_domain), by_secret)
    _judge_project(values, section, any_domain, by_secret)
    by_name = values["tenant-name"] and not values["tenant-id"]
    domain = values["tenant-domain-id"] or values["tenant-domain-name"] or any_domain
    if by_name and not by_secret and not values["trust-id"] and not domain:
        right = "set, or tenant-domain-id, domain-id or domain-name, with tenant-name"
        section.problem("tenant-domain-name", "", right)


def _judge_ways(values: Mapping[str, str], section: SectionReader) -> None:
    """Report two ways to authenticate: the reference silently uses one of them."""
    ways = ("password", "token", "application-credential-secret")
    first, *others = [key for key in ways if values[key]] or ("",)
    for key in others:
        section.conflict(key, first)


def _judge_user(
    values: Mapping[str, str], section: SectionReader, has_domain: bool, by_secret: bool
) -> None:
    password = values["password"] or (values["trust-id"] and values["trustee-password"])
    user_id = values["user-id"] or (values["trust-id"] and values["trustee-id"])
    named = values["application-credential-name"]
    by_id = values["application-credential-id"]
    if not password and not by_secret:
        if by_id or named:
            right = "set, with the application credential"
            section.problem("application-credential-secret", "", right)
        else:
            right = "set, or token, or application-credential-secret with its id"
            section.problem("password", "", right)
    if not password and by_id:
        return
    if not password and by_secret and not named:
        right = "set, or application-credential-name, with the secret"
        section.problem("application-credential-id", "", right)
    if not user_id and not values["username"]:
        section.problem("username", "", "set, or user-id")
    if (
        not user_id
        and not has_domain
        and (values["username"] or named or not by_secret)
    ):
        right = "set, or user-domain-id, domain-id or domain-name, with username"
        section.problem("user-domain-name", "", right)


def _judge_project(
    values: Mapping[str, str], section: SectionReader, domain: str, by_secret: bool
) -> None:
    """Report credentials that name no project, where nothing else implies one.

    Keystone then issues a token of the domain, which no other service accepts; without
    a domain, one of the user's default project, if there is one: hence a warning only.
    A token, a trust and an application credential have a project of their own.

    Source: Keystone API v3, "Password authentication with unscoped authorization".
    """
    has_own = by_secret or values["application-credential-id"]
    has_own = has_own or values["application-credential-name"]
    if values["tenant-id"] or values["tenant-name"] or values["trust-id"] or has_own:
        return
    if values["token"] and not domain:
        return
    right = "set, or tenant-name"
    if domain:
        right += ": with domain-id or domain-name alone no service can be used"
        section.problem("tenant-id", "", right)
    elif section.has_problems:
        section.problem("tenant-id", "", f"{right}, or the user has a default project")
    else:
        section.warn(
            "tenant-id: not set, nor tenant-name: the user's default project is used,"
            " if there is one"
        )


def _networking(section: SectionReader) -> Networking:
    networks: list[settings.Network] = []
    order = section.text("address-sort-order")
    for item in filter(None, (item.strip() for item in order.split(","))):
        try:
            if "/" not in item:
                raise ValueError
            networks.append(ipaddress.ip_network(item, strict=False))
        except ValueError:
            section.reject("address-sort-order", item, "a CIDR", "ignored")
    networking = Networking(
        ipv6_support_disabled=section.boolean("ipv6-support-disabled", False),
        public_network_names=section.texts("public-network-name"),
        internal_network_names=section.texts("internal-network-name"),
        address_sort_order=tuple(networks),
    )
    section.finish()
    return networking


def _route(section: SectionReader) -> tuple[str, bool]:
    """Return [Route] router-id and address-pairs-only."""
    router_id = section.text("router-id")
    pairs_only = section.boolean("address-pairs-only", False)
    if router_id and pairs_only:
        section.warn("router-id: ignored, since address-pairs-only is true")
    section.finish()
    return router_id, pairs_only


def _metadata(section: SectionReader) -> Metadata:
    text = section.text("search-order") or ",".join(_SOURCES)
    order = tuple(item.strip() for item in text.split(","))
    if len(order) > len(_SOURCES) or not set(order) <= set(_SOURCES):
        right = "one or both of configDrive, metadataService, separated by a comma"
        section.problem("search-order", text, right)
    timeout_s = section.seconds("request-timeout", 0) or 60.0
    section.finish()
    return Metadata(order, timeout_s)


def _class(section: SectionReader) -> LoadBalancerClass:
    balancer_class = LoadBalancerClass(
        floating_network_id=section.identifier("floating-network-id"),
        floating_subnet_id=section.identifier("floating-subnet-id"),
        floating_subnet=section.text("floating-subnet"),
        floating_subnet_tags=section.text("floating-subnet-tags"),
        network_id=section.identifier("network-id"),
        subnet_id=section.identifier("subnet-id"),
        member_subnet_id=section.identifier("member-subnet-id"),
    )
    section.finish()
    return balancer_class


def _load_balancer(
    section: SectionReader, classes: Mapping[str, LoadBalancerClass], steps: int
) -> LoadBalancer:
    default = LoadBalancer()
    provider = section.text("lb-provider", default.lb_provider)
    store = section.text("container-store", default.container_store)
    if provider not in _LB_PROVIDERS:
        right = "one of " + ", ".join(_LB_PROVIDERS)
        section.reject("lb-provider", provider, right, "using it nevertheless")
    if store not in _CONTAINER_STORES:
        right = "one of " + ", ".join(_CONTAINER_STORES)
        section.reject("container-store", store, right, "using it nevertheless")
    method = section.text("lb-method", default.lb_method)
    _judge_method(method, provider, section)
    version = section.text("lb-version")
    if version not in ("", "v2"):
        section.reject("lb-version", version, "one of v2", "ignored")
    load_balancer = LoadBalancer(
        enabled=section.boolean("enabled", True),
        lb_version=version,
        lb_provider=provider,
        lb_method=method,
        subnet_id=section.identifier("subnet-id"),
        member_subnet_id=section.identifier("member-subnet-id"),
        member_cidr=_cidrs(section, "member-cidr"),
        network_id=section.identifier("network-id"),
        floating_network_id=section.identifier("floating-network-id"),
        floating_subnet_id=section.identifier("floating-subnet-id"),
        floating_subnet=section.text("floating-subnet"),
        floating_subnet_tags=section.text("floating-subnet-tags"),
        flavor_id=section.identifier("flavor-id"),
        availability_zone=section.text("availability-zone"),
        node_selector=section.text("node-selector"),
        default_tls_container_ref=section.text("default-tls-container-ref"),
        create_monitor=section.boolean("create-monitor", False),
        monitor_delay_s=section.seconds("monitor-delay", 5.0),
        monitor_timeout_s=section.seconds("monitor-timeout", 3.0),
        monitor_max_retries=section.whole("monitor-max-retries", 1),
        monitor_max_retries_down=section.whole("monitor-max-retries-down", 3),
        manage_security_groups=section.boolean("manage-security-groups", False),
        internal_lb=section.boolean("internal-lb", False),
        cascade_delete=section.boolean("cascade-delete", True),
        enable_ingress_hostname=section.boolean("enable-ingress-hostname", False),
        ingress_hostname_suffix=section.text("ingress-hostname-suffix", "nip.io"),
        max_shared_lb=section.whole("max-shared-lb", 2),
        container_store=store,
        provider_requires_serial_api_calls=section.boolean(
            "provider-requires-serial-api-calls", False
        ),
        wait_active_steps=steps,
        classes=classes,
    )
    section.finish()
    return load_balancer


def _judge_method(method: str, provider: str, section: SectionReader) -> None:
    """Warn of an algorithm that each Service would report in an Event."""
    if provider == "ovn" and method != settings.OVN_LB_METHOD:
        right = f"one of {settings.OVN_LB_METHOD}, with provider ovn"
        section.reject("lb-method", method, right, "Services report it")
    elif method not in settings.LB_METHODS:
        right = "one of " + ", ".join(settings.LB_METHODS)
        section.reject("lb-method", method, right, "Services report it")


def _cidrs(section: SectionReader, key: str) -> tuple[settings.Network, ...]:
    networks: list[settings.Network] = []
    for item in ",".join(section.texts(key)).split(","):
        try:
            if item.strip():
                networks.append(ipaddress.ip_network(item.strip(), strict=False))
        except ValueError:
            right = "CIDRs such as 10.0.0.0/16, separated by commas"
            section.problem(key, item.strip(), right)
    return tuple(networks)


def _block_storage(section: SectionReader) -> BlockStorage:
    default = BlockStorage()
    block_storage = BlockStorage(
        ignore_volume_microversion=section.boolean("ignore-volume-microversion", False),
        rescan_on_resize=section.boolean("rescan-on-resize", False),
        ignore_volume_az=section.boolean("ignore-volume-az", False),
        node_volume_attach_limit=section.whole(
            "node-volume-attach-limit", default.node_volume_attach_limit
        ),
        availability_zone_map=_zone_map(section),
    )
    section.finish()
    return block_storage


def _zone_map(section: SectionReader) -> Mapping[str, str]:
    """Read pairs "compute zone:volume zone", by comma or by repeating the key."""
    key = "availability-zone-map"
    zones: dict[str, str] = {}
    for item in ",".join(section.texts(key)).split(","):
        compute, colon, volume = (part.strip() for part in item.partition(":"))
        if not colon and not compute:
            continue
        if not compute or not volume or zones.get(compute, volume) != volume:
            right = "pairs such as az1:volumes-1,az2:volumes-2, each first part once"
            section.problem(key, item.strip(), right)
        zones[compute] = volume
    return zones


def _active_steps(env: Mapping[str, str], findings: ConfigFindings) -> int:
    """Read the steps of waiting; what is no number is passed over.

    Source: kubernetes/cloud-provider-openstack pkg/util/openstack/loadbalancer.go.
    """
    text = env.get("OCCM_WAIT_LB_ACTIVE_STEPS", "")
    default = LoadBalancer().wait_active_steps
    if text.isdecimal():
        return int(text)
    if text:
        findings.warnings.append(
            f"OCCM_WAIT_LB_ACTIVE_STEPS: invalid value {shown(text)}: must be a whole"
            f" number; using the default {default}"
        )
    return default
