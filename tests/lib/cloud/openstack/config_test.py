"""cloud.conf is read as the reference reads it, and every problem is named at once."""

import ipaddress
import pathlib
from collections.abc import Callable

import pytest

from lib.cloud.openstack.config import reader as config
from lib.cloud.openstack.config import settings
from lib.cloud.openstack.config.settings import Credentials

MINIMAL = """
[Global]
auth-url = https://keystone.example/v3
username = robot
password = hunter2
domain-name = Default
tenant-name = fleet
"""

PLATFORM = """
[Global]
auth-url = "https://cloud.example:5000/v3"
domain-name = "users"
tenant-name = "project"
username = "robot"
password = "p;a#s\\"s"
region = "RegionOne"
ca-file = /etc/config/ca.crt
[Networking]
public-network-name = "ext-1"
public-network-name = "ext-2"
internal-network-name = "int"
ipv6-support-disabled = true
[LoadBalancer]
create-monitor = "true"
monitor-delay = "2s"
monitor-timeout = "1s"
subnet-id = "00000000-0000-4000-8000-000000000001"
floating-network-id = "00000000000040008000000000000002"
enable-ingress-hostname = true
[BlockStorage]
ignore-volume-microversion = false
rescan-on-resize = true"""


def read(text: str, env: dict[str, str] | None = None) -> settings.Config:
    return config.read(text, env or {}, lambda path: None)


def problems(text: str, env: dict[str, str] | None = None) -> tuple[str, ...]:
    with pytest.raises(settings.CloudConfError) as raised:
        read(text, env)
    return raised.value.problems


def test_the_file_of_the_platform_reads_without_a_warning() -> None:
    """The very shape that a platform writes into its Secret gives each value."""
    config = read(PLATFORM)
    assert config == settings.Config(
        credentials=Credentials(
            auth_url="https://cloud.example:5000/v3",
            domain_name="users",
            tenant_name="project",
            username="robot",
            password='p;a#s"s',
            region="RegionOne",
            ca_file="/etc/config/ca.crt",
        ),
        networking=settings.Networking(
            ipv6_support_disabled=True,
            public_network_names=("ext-1", "ext-2"),
            internal_network_names=("int",),
        ),
        load_balancer=settings.LoadBalancer(
            create_monitor=True,
            monitor_delay_s=2.0,
            monitor_timeout_s=1.0,
            subnet_id="00000000-0000-4000-8000-000000000001",
            floating_network_id="00000000000040008000000000000002",
            enable_ingress_hostname=True,
        ),
        block_storage=settings.BlockStorage(rescan_on_resize=True),
    )
    assert config.warnings == ()


def test_defaults_are_the_references() -> None:
    """A file with credentials only leaves every other setting at its default."""
    config = read(MINIMAL)
    assert config.networking == settings.Networking()
    assert config.metadata == settings.Metadata(
        ("configDrive", "metadataService"), 60.0
    )
    assert config.router_id == ""
    assert not config.regional
    balancer = config.load_balancer
    assert (balancer.enabled, balancer.lb_provider, balancer.lb_method) == (
        True,
        "amphora",
        "ROUND_ROBIN",
    )
    assert (balancer.monitor_delay_s, balancer.monitor_timeout_s) == (5.0, 3.0)
    assert (balancer.monitor_max_retries, balancer.monitor_max_retries_down) == (1, 3)
    assert (balancer.max_shared_lb, balancer.wait_active_steps) == (2, 23)
    assert balancer.cascade_delete
    assert balancer.ingress_hostname_suffix == "nip.io"
    assert balancer.container_store == "barbican"


def test_all_other_keys_are_read_into_their_fields() -> None:
    """Route, Metadata, classes, the sort order and the environment have their place."""
    text = """
[Route]
router-id = r-1
[Metadata]
search-order = metadataService , configDrive
request-timeout = 1m30s
[Networking]
address-sort-order = "10.0.0.0/8, 2001:db8::/32"
[LoadBalancer]
enabled = off
internal-lb
max-shared-lb = 5
provider-requires-serial-api-calls = 1
[LoadBalancerClass "gold"]
floating-network-id = f
member-subnet-id = m
"""
    env = {"OS_CCM_REGIONAL": "true", "OCCM_WAIT_LB_ACTIVE_STEPS": "30"}
    config = read(MINIMAL + text, env)
    assert config.router_id == "r-1"
    assert config.metadata == settings.Metadata(
        ("metadataService", "configDrive"), 90.0
    )
    assert config.networking.address_sort_order == (
        ipaddress.ip_network("10.0.0.0/8"),
        ipaddress.ip_network("2001:db8::/32"),
    )
    assert not config.load_balancer.enabled
    assert config.load_balancer.internal_lb
    assert config.load_balancer.max_shared_lb == 5
    assert config.load_balancer.provider_requires_serial_api_calls
    assert config.load_balancer.wait_active_steps == 30
    assert config.load_balancer.classes == {
        "gold": settings.LoadBalancerClass(
            floating_network_id="f", member_subnet_id="m"
        )
    }
    assert config.regional


@pytest.mark.parametrize(
    ("word", "value"),
    [
        *[("true", True), ("YES", True), ("On", True), ("1", True)],
        *[("false", False), ("no", False), ("OFF", False), ("0", False)],
    ],
)
def test_switches_take_every_word_of_gcfg(word: str, value: bool) -> None:
    """true, yes, on, 1 and their opposites count, in any letter case."""
    text = f"{MINIMAL}[Networking]\nipv6-support-disabled = {word}\n"
    assert read(text).networking.ipv6_support_disabled is value


def test_only_the_word_true_makes_anything_regional() -> None:
    """OS_CCM_REGIONAL is compared exactly, as the reference does."""
    assert not read(MINIMAL, {"OS_CCM_REGIONAL": "True"}).regional


def test_unknown_keys_and_sections_and_odd_values_are_only_warnings() -> None:
    """What gcfg lets pass passes, and is told."""
    text = """
[Global]
colour = red
tls-insecure = yes
cert-file = /only/one
[Global "second"]
username = other
[Nonsense]
[LoadBalancer]
lb-provider = mine
[Networking]
address-sort-order = 10.0.0.0/8, nonsense, 10.0.0.1
"""
    config = read(MINIMAL + text, {"OCCM_WAIT_LB_ACTIVE_STEPS": "many"})
    assert config.warnings == (
        "[Nonsense]: unknown section; ignored",
        (
            '[Global] tls-insecure: invalid value "yes": must be true or false; using'
            " false"
        ),
        "[Global] colour: unknown key; ignored",
        "[Global] cert-file and key-file: must be set together; ignored",
        (
            '[Networking] address-sort-order: invalid value "nonsense": must be a CIDR;'
            " ignored"
        ),
        (
            '[Networking] address-sort-order: invalid value "10.0.0.1": must be a CIDR;'
            " ignored"
        ),
        (
            'OCCM_WAIT_LB_ACTIVE_STEPS: invalid value "many": must be a whole number;'
            " using the default 23"
        ),
        (
            '[LoadBalancer] lb-provider: unsupported value "mine": must be one of'
            " amphora, octavia, ovn, f5, amphorav2; using it nevertheless"
        ),
    )
    assert config.load_balancer.wait_active_steps == 23
    assert not config.credentials.tls_insecure
    assert config.credentials.username == "robot"


def test_a_misspelt_key_or_section_is_named_with_the_one_it_resembles() -> None:
    text = "regio = other\n[LoadBalance]\n[Networking]\npublic-network-nam = a\n"
    assert read(MINIMAL + text).warnings == (
        "[LoadBalance]: unknown section: did you mean loadbalancer?; ignored",
        "[Global] regio: unknown key: did you mean region?; ignored",
        "[Networking] public-network-nam: unknown key: did you mean"
        " public-network-name?; ignored",
    )


def test_a_clouds_yaml_in_place_of_cloud_conf_is_recognized() -> None:
    (problem,) = problems("# of the lab\nclouds:\n  one: {}\n")
    assert problem.startswith("line 2: invalid syntax")
    assert problem.endswith("names with use-clouds = true and clouds-file in [Global]")


def test_all_problems_are_reported_together_each_with_what_would_be_right() -> None:
    """One start shows every mistake of the file."""
    text = """
[Global]
auth-url = keystone.example
os-endpoint-type = outside
[Networking]
ipv6-support-disabled = maybe
[Metadata]
search-order = configDrive,dhcp
request-timeout = 60
[LoadBalancer]
monitor-delay = -1s
monitor-max-retries = many
"""
    assert problems(text) == (
        '[Global] os-endpoint-type: unsupported value "outside": must be one of public,'
        " internal, admin",
        '[Global] auth-url: invalid value "keystone.example": must be '
        "the URL of Keystone, such"
        " as https://keystone.example:5000/v3",
        "[Global] password: not set: must be set, or token, or"
        " application-credential-secret with its id",
        "[Global] username: not set: must be set, or user-id",
        "[Global] user-domain-name: not set: must be set, or user-domain-id,"
        " domain-id or domain-name, with username",
        "[Global] tenant-id: not set: must be set, or tenant-name, or the user has"
        " a default project",
        '[Networking] ipv6-support-disabled: invalid value "maybe": must be '
        "true or false",
        '[Metadata] search-order: invalid value "configDrive,dhcp": must be '
        "one or both of"
        " configDrive, metadataService, separated by a comma",
        '[Metadata] request-timeout: invalid value "60": must be '
        "a duration such as"
        ' "5s" or "1m"',
        '[LoadBalancer] monitor-delay: invalid value "-1s": must be '
        "a duration such as"
        ' "5s" or "1m"',
        '[LoadBalancer] monitor-max-retries: invalid value "many": must be '
        "a whole number, at least 0",
    )


SECRET = "application-credential-secret"


def global_section(**keys: str) -> str:
    lines = [f"{key.replace('_', '-')} = {value}" for key, value in keys.items()]
    return "\n".join(["[Global]", "auth-url = http://k.example/v3", *lines]) + "\n"


@pytest.mark.parametrize(
    "keys",
    [
        {"username": "u", "password": "p", "domain_id": "d", "tenant_name": "t"},
        {"user_id": "u", "password": "p", "tenant_id": "t"},
        {"application_credential_id": "a", "application_credential_secret": "s"},
        {
            "application_credential_name": "a",
            "application_credential_secret": "s",
            "username": "u",
            "user_domain_id": "d",
        },
        {"token": "t", "tenant_id": "t"},
        {"token": "t"},
        {"trust_id": "t", "trustee_id": "u", "trustee_password": "p"},
        {"trust_id": "t", "user_id": "u", "password": "p", "tenant_name": "x"},
    ],
)
def test_each_way_of_authentication_is_accepted(keys: dict[str, str]) -> None:
    """Password, application credential, token and trust are complete like this."""
    assert read(global_section(**keys)).warnings == ()


@pytest.mark.parametrize(
    ("keys", "missing"),
    [
        ({}, ["password", "username", "user-domain-name", "tenant-id"]),
        ({"username": "u"}, ["password", "user-domain-name", "tenant-id"]),
        (
            {"tenant_name": "t"},
            ["password", "username", "user-domain-name", "tenant-domain-name"],
        ),
        ({"password": "p"}, ["username", "user-domain-name", "tenant-id"]),
        ({"username": "u", "password": "p"}, ["user-domain-name", "tenant-id"]),
        ({"username": "u", "password": "p", "domain_id": "d"}, ["tenant-id"]),
        ({"user_id": "u", "password": "p", "domain_name": "d"}, ["tenant-id"]),
        ({"token": "t", "domain_name": "d"}, ["tenant-id"]),
        ({"user_id": "u", "password": "p", "tenant_name": "t"}, ["tenant-domain-name"]),
        ({"application_credential_id": "a"}, [SECRET]),
        (
            {"application_credential_name": "a"},
            [SECRET, "username", "user-domain-name"],
        ),
        (
            {"application_credential_secret": "s"},
            ["application-credential-id", "username"],
        ),
        (
            {"application_credential_name": "a", "application_credential_secret": "s"},
            ["username", "user-domain-name"],
        ),
    ],
)
def test_every_missing_credential_is_reported_at_once(
    keys: dict[str, str], missing: list[str]
) -> None:
    """Keystone would refuse these. Absence is shown: only values are hidden."""
    messages = problems(global_section(**keys))
    assert [text.partition(": ")[0] for text in messages] == [
        f"[Global] {key}" for key in missing
    ]
    assert all(": not set: must be set" in text for text in messages)


def test_a_project_that_only_the_user_s_default_can_be_is_warned_of() -> None:
    """Keystone then takes the user's default project, as with the reference."""
    keys = {"username": "u", "password": "p", "user_domain_name": "d"}
    assert read(global_section(**keys)).warnings == (
        "[Global] tenant-id: not set, nor tenant-name: the user's default project is"
        " used, if there is one",
    )


LOAD_BALANCER_WARNINGS = {
    "lb-method = FASTEST": (
        '[LoadBalancer] lb-method: unsupported value "FASTEST": must be '
        "one of"
        " ROUND_ROBIN, LEAST_CONNECTIONS, SOURCE_IP, SOURCE_IP_PORT; Services report it"
    ),
    "lb-provider = ovn": (
        '[LoadBalancer] lb-method: unsupported value "ROUND_ROBIN":'
        " must be one of SOURCE_IP_PORT, with provider ovn; Services report it"
    ),
    "subnet-id = inner": (
        '[LoadBalancer] subnet-id: invalid value "inner": must be'
        " a UUID; no object has this ID"
    ),
    '[LoadBalancerClass "gold"]\nfloating-subnet-id = not-a-uuid': (
        '[LoadBalancerClass "gold"] floating-subnet-id: invalid value "not-a-uuid":'
        " must be a UUID; no object has this ID"
    ),
}
"""What each Service would report later."""


@pytest.mark.parametrize("lines", LOAD_BALANCER_WARNINGS)
def test_what_no_service_can_use_is_warned_of_at_the_start(lines: str) -> None:
    config = read(f"{MINIMAL}[LoadBalancer]\n{lines}\n")
    assert config.warnings == (LOAD_BALANCER_WARNINGS[lines],)


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"password": "p", "token": "t"}, ["token"]),
        ({"password": "p", "application_credential_secret": "s"}, [SECRET]),
        ({"token": "t", "application_credential_secret": "s"}, [SECRET]),
        (
            {"password": "p", "token": "t", "application_credential_secret": "s"},
            ["token", SECRET],
        ),
    ],
)
def test_two_ways_to_log_in_are_refused(keys: dict[str, str], named: list[str]) -> None:
    """All but the first are reported, in conflict with it."""
    first = next(iter(keys))
    messages = problems(
        global_section(user_id="u", application_credential_id="a", **keys)
    )
    assert messages == tuple(
        f"[Global] {name}: must not be set together with {first}" for name in named
    )


def test_a_secret_is_in_no_problem_nor_in_any_repr() -> None:
    """Neither an error nor a printed configuration shows a secret."""
    secrets = {
        "password": "hunter2",
        "token": "hunter3",
        "trustee_password": "hunter4",
        "application_credential_secret": "hunter5",
    }
    text = global_section(**secrets, os_endpoint_type="nowhere")
    assert "hunter" not in str(problems(text))
    fine = Credentials(
        password="hunter2",
        token="hunter3",
        trustee_password="hunter4",
        application_credential_secret="hunter5",
    )
    assert "hunter" not in repr(settings.Config(fine))


def test_a_broken_line_is_told_by_its_number() -> None:
    """A syntax fault is a configuration error like any other."""
    (problem,) = problems('[Global]\npassword = "hunter2\n')
    assert problem.startswith("line 2: invalid syntax")


CLOUDS = """
clouds:
  one:
    region_name: RegionY
    endpoint_type: internalURL
    cacert: /ca.pem
    auth:
      auth_url: https://yaml.example/v3
      username: from-yaml
      password: 123456
      project_name: project-y
      user_domain_name: Default
      project_domain_name: Default
      trust_id: never-read
"""


def clouds(
    text: str = CLOUDS, at: str = "/etc/openstack/clouds.yaml"
) -> Callable[[pathlib.Path], str | None]:
    return {pathlib.Path(at): text}.get


def test_clouds_yaml_fills_only_what_cloud_conf_leaves_empty() -> None:
    """cloud.conf wins; trusts are never read from clouds.yaml."""
    text = "[Global]\nuse-clouds\ncloud = one\nusername = own\n"
    credentials = config.read(text, {}, clouds()).credentials
    assert credentials == Credentials(
        auth_url="https://yaml.example/v3",
        username="own",
        password="123456",
        tenant_name="project-y",
        user_domain_name="Default",
        tenant_domain_name="Default",
        region="RegionY",
        endpoint_type="internal",
        ca_file="/ca.pem",
    )


@pytest.mark.parametrize(
    ("line", "env", "path"),
    [
        ("clouds-file = /mine.yaml", {"OS_CLIENT_CONFIG_FILE": "/env"}, "/mine.yaml"),
        ("", {"OS_CLIENT_CONFIG_FILE": "/env.yaml"}, "/env.yaml"),
        ("", {}, "clouds.yaml"),
        ("", {"HOME": "/home/u"}, "/home/u/.config/openstack/clouds.yaml"),
        ("", {"XDG_CONFIG_HOME": "/cfg"}, "/cfg/openstack/clouds.yaml"),
        ("", {}, "/etc/openstack/clouds.yaml"),
    ],
)
def test_clouds_yaml_is_looked_for_in_the_references_order(
    line: str, env: dict[str, str], path: str
) -> None:
    """Each place is found, and the only cloud in the file needs no name."""
    text = f"[Global]\nuse-clouds = true\n{line}\n"
    names_ = config.read(text, env, clouds(at=path))
    assert names_.credentials.username == "from-yaml"


def test_the_first_clouds_yaml_that_exists_counts() -> None:
    """The working directory comes before /etc."""
    files = {
        pathlib.Path("clouds.yaml"): CLOUDS.replace("from-yaml", "near"),
        pathlib.Path("/etc/openstack/clouds.yaml"): CLOUDS,
    }
    names_ = config.read("[Global]\nuse-clouds\n", {}, files.get)
    assert names_.credentials.username == "near"


def test_secure_yaml_adds_the_secrets() -> None:
    """A password that is kept apart is found."""
    secure = "clouds: {one: {auth: {password: from-secure, user_id: u}}}"
    files = {
        pathlib.Path("/etc/openstack/clouds.yaml"): CLOUDS,
        pathlib.Path("/etc/openstack/secure.yaml"): secure,
    }
    names_ = config.read("[Global]\nuse-clouds\n", {}, files.get)
    assert names_.credentials.password == "from-secure"
    assert names_.credentials.user_id == "u"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (lambda path: None, "[Global] clouds-file: not set"),
        (clouds("clouds: [hunter2"), "a YAML file with a map of clouds"),
        (clouds("clouds: {one: hunter2}"), "a YAML file with a map of clouds"),
        (
            clouds("clouds: {a: {}, b: {}}"),
            "[Global] cloud: not set: must be one of",
        ),
        (clouds("{}"), "clouds in /etc"),
        (clouds("clouds:"), "clouds in /etc"),
        (clouds("clouds: {one: {auth: hunter2}}"), "clouds.one.auth must be a map"),
        (
            clouds("clouds: {one: {auth: {password: [hunter2]}}}"),
            "clouds.one.auth.password must be a text",
        ),
        (
            clouds("clouds: {one: {cacert: {a: hunter2}}}"),
            "clouds.one.cacert must be a text",
        ),
        (clouds("a: !!python/object:os.system hunter2"), "a YAML file with a map"),
    ],
)
def test_a_clouds_yaml_that_can_not_be_used_is_a_problem(
    files: Callable[[pathlib.Path], str | None], expected: str
) -> None:
    """No file, a broken one, or no such cloud stops the start, without quoting it."""
    with pytest.raises(settings.CloudConfError) as raised:
        config.read("[Global]\nuse-clouds\n", {}, files)
    (problem,) = raised.value.problems
    assert expected in problem
    assert "hunter2" not in problem


@pytest.mark.parametrize(
    "password",
    ["0123", "yes", "1e5", "2026-02-30", "0x10", "1_0", "12:30", "~x", "null0", "NO"],
)
def test_a_text_of_clouds_yaml_keeps_its_characters(password: str) -> None:
    """YAML 1.1 would make another number, a truth value, or an error of it."""
    text = CLOUDS.replace("123456", password)
    credentials = config.read("[Global]\nuse-clouds\n", {}, clouds(text)).credentials
    assert credentials.password == password


@pytest.mark.parametrize(
    "line",
    [
        "cacert:",
        "cacert: ~",
        "cacert: null",
        'cacert: ""',
        "verify: no",
        "verify: [a]",
        "regions: [a, b]",
        "profile: {a: b}",
        "identity_api_version: 3",
        "interface: public",
        "key: 5",
        "unknown: 2026-02-30",
    ],
)
def test_what_is_empty_or_not_needed_is_not_judged(line: str) -> None:
    """Nor are other clouds of the file, nor a key that is set twice."""
    others = "  two: hunter2\n  three: {auth: [], cacert: {}}\n  three:\n"
    text = CLOUDS.replace("    cacert: /ca.pem\n", f"    {line}\n") + others
    read = config.read("[Global]\nuse-clouds\ncloud = one\n", {}, clouds(text))
    assert read.credentials.password == "123456"
    assert read.credentials.ca_file == ""


@pytest.mark.parametrize(
    ("own", "user", "project"),
    [
        ("", ("d-1", ""), ("d-1", "")),
        ("user_domain_name: U", ("", "U"), ("d-1", "")),
        ("project_domain_id: P", ("d-1", ""), ("P", "")),
    ],
)
def test_the_default_domain_counts_where_none_is_named(
    own: str, user: tuple[str, str], project: tuple[str, str]
) -> None:
    """Source: gophercloud/utils, setDomainIfNeeded."""
    text = (
        "clouds: {one: {region_name: R, auth: {auth_url: 'https://k.example/v3',"
        " username: u, password: p, project_name: n, default_domain: d-1,"
        f" {own}}}}}}}"
    )
    read = config.read("[Global]\nuse-clouds\n", {}, clouds(text)).credentials
    assert (read.user_domain_id, read.user_domain_name) == user
    assert (read.tenant_domain_id, read.tenant_domain_name) == project


@pytest.mark.parametrize(
    ("line", "is_warned"),
    [
        ("password = pa#ss", True),
        ("password = pa;ss", True),
        ("password = pass # a comment", False),
        ('password = "pa#ss"', False),
        ("password = pass", False),
    ],
)
def test_a_value_that_a_comment_may_have_cut_is_named(
    line: str, is_warned: bool
) -> None:
    text = f"[Global]\nauth-url = https://k.example/v3\nusername = u\n{line}\n"
    text += "tenant-id = t\nuser-domain-name = d\n"
    warnings = config.read(text, {}).warnings
    assert len(warnings) == is_warned
    for warning in warnings:
        assert warning.startswith("[Global] password: the value ends before # or ;")
        assert "pa" not in warning.removeprefix("[Global] password").replace("part", "")


def test_an_empty_name_of_a_network_is_none() -> None:
    text = "[Global]\nauth-url = https://k.example/v3\nusername = u\npassword = p\n"
    text += "tenant-id = t\nuser-domain-name = d\n[Networking]\n"
    text += "internal-network-name =\npublic-network-name=\npublic-network-name = a\n"
    networking = config.read(text, {}).networking
    assert networking.internal_network_names == ()
    assert networking.public_network_names == ("a",)


def test_files_are_read_from_disk_and_may_be_absent(tmp_path: pathlib.Path) -> None:
    """The real reader gives a file's text, and None for none."""
    (tmp_path / "there").write_text("text")
    assert config.read_file(tmp_path / "there") == "text"
    assert config.read_file(tmp_path / "absent") is None


SEVERAL = (
    MINIMAL
    + """
[Global "second"]
auth-url = https://second.example/v3
username = other
password = hunter3
domain-name = Default
tenant-name = fleet
[BlockStorage]
availability-zone-map = az1:volumes-1, az2:volumes-1
availability-zone-map = "az3:volumes-3"
"""
)


def test_a_named_global_section_is_read_in_place_of_the_plain_one() -> None:
    plain, second = (config.read(SEVERAL, {}, cloud=name) for name in ("", "second"))
    assert plain.credentials.auth_url == "https://keystone.example/v3"
    assert second.credentials.auth_url == "https://second.example/v3"
    assert second.credentials.username == "other"
    assert not plain.warnings
    assert not second.warnings


def test_a_named_global_section_that_is_missing_is_a_problem() -> None:
    with pytest.raises(settings.CloudConfError) as raised:
        config.read(SEVERAL, {}, cloud="third")
    message = '[Global "third"]: not found: must be one of [Global "second"]'
    assert message in raised.value.problems


def test_the_map_of_zones_is_read_from_commas_and_repeated_keys() -> None:
    zones = config.read(SEVERAL, {}).block_storage.availability_zone_map
    assert zones == {"az1": "volumes-1", "az2": "volumes-1", "az3": "volumes-3"}


@pytest.mark.parametrize("pairs", ["az1", "az1:", ":v", "az1:v1,az1:v2"])
def test_a_map_of_zones_that_is_no_map_is_a_problem(pairs: str) -> None:
    text = MINIMAL + f"[BlockStorage]\navailability-zone-map = {pairs}\n"
    with pytest.raises(settings.CloudConfError) as raised:
        config.read(text, {})
    assert "availability-zone-map: invalid value" in str(raised.value)
    assert "az1:volumes-1" in str(raised.value)
