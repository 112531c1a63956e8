"""Judges accounts: one password everywhere, and a Job that makes each. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.harness.osdpl import cloud_manifests
from tests.harness.osdpl.cloud_manifests import CloudManifests, Object, Pods
from tests.harness.osdpl.judge_findings import JudgeFinding

_DATABASE = re.compile(r"mysql\+pymysql://([^:@/\s]+):([^@/\s]*)@[^/\s]+/([\w-]*)")
_BUS = re.compile(r"rabbit://([^:@/\s]+):([^@/\s,]*)@[^/\s]+/([\w-]*)")
_SERVERS = {
    "database": ("openstack-mariadb", "oslo_db", "admin"),
    "bus": ("openstack-rabbitmq", "oslo_messaging", "user"),
}
"""Release, endpoint and account of the administrator of each server."""

Account = tuple[str, str]
"""Program that keeps it, and name."""


def passwords(cloud: CloudManifests) -> Iterator[JudgeFinding]:
    """Yield accounts with different passwords in manifests or values."""
    known: dict[Account, dict[str, str]] = {}
    for place, account, password in _named(cloud):
        known.setdefault(account, {}).setdefault(password, place)
    for (keeper, name), places in known.items():
        if len(places) > 1:
            text = f"account {name} of {keeper} has {len(places)} passwords"
            yield JudgeFinding("account", ", ".join(sorted(places.values())), text)


def _named(cloud: CloudManifests) -> Iterator[tuple[str, Account, str]]:
    for entry, key, text in cloud.texts:
        place = f"{entry.release} {entry} {key}"
        for keeper, pattern in (("database", _DATABASE), ("bus", _BUS)):
            for user, password, _ in pattern.findall(text):
                yield place, (keeper, user), password
    for release, values in cloud.values.items():
        yield from _of_values(release, values)
    for entry in cloud.of_kind("Secret"):
        content = cloud_manifests.texts(entry)
        if "OS_USERNAME" in content:
            account = ("identity", _identity(content))
            yield f"{entry.release} {entry}", account, content["OS_PASSWORD"]
    for entry, file, section, options in _identity_sections(cloud):
        name = f"{options.get('user_domain_name', '')}/{options['username']}"
        place = f"{entry.release} {entry} {file} {section}"
        yield place, ("identity", name), options.get("password", "")


def _of_values(
    release: str, values: Mapping[str, Any]
) -> Iterator[tuple[str, Account, str]]:
    for endpoint, tree in (values.get("endpoints") or {}).items():
        keeper = _keeper(endpoint)
        accounts = tree.get("auth") if isinstance(tree, dict) else None
        for key, account in (accounts or {}).items() if keeper else ():
            if isinstance(account, dict) and "username" in account:
                name = account["username"]
                if keeper == "identity":
                    name = f"{account.get('user_domain_name', '')}/{name}"
                place = f"{release} endpoints.{endpoint}.auth.{key}"
                yield place, (keeper, name), str(account.get("password"))


def _keeper(endpoint: str) -> str:
    if endpoint.startswith("oslo_db"):
        return "database"
    return {"identity": "identity", "oslo_messaging": "bus"}.get(endpoint, "")


def _identity(content: Mapping[str, str], prefix: str = "") -> str:
    domain = content.get(f"{prefix}OS_USER_DOMAIN_NAME", "")
    return f"{domain}/{content[f'{prefix}OS_USERNAME']}"


def _identity_sections(
    cloud: CloudManifests,
) -> Iterator[tuple[Object, str, str, dict[str, str]]]:
    for entry, file, parsed in cloud.settings():
        for section in parsed.sections():
            options = dict(parsed[section])
            if "username" in options and "project_domain_name" in options:
                yield entry, file, section, options


def makers(cloud: CloudManifests) -> Iterator[JudgeFinding]:
    """Yield accounts, databases and virtual hosts that are used and made by no Job."""
    rows_of_jobs = {row for pods in cloud.pods for row in _made(cloud, pods)}
    admins = {(keeper, _admin(cloud, keeper)) for keeper in _SERVERS}
    for keeper, _, name in tuple(rows_of_jobs):
        rows_of_jobs |= {
            (keeper, user, name) for kind, user in admins if kind == keeper
        }
    for entry, key, text in cloud.texts:
        place = f"{entry.release} {entry}"
        for keeper, pattern in (("database", _DATABASE), ("bus", _BUS)):
            for user, _, name in pattern.findall(text):
                if name and (keeper, user, name) not in rows_of_jobs:
                    what = f"{key}: {keeper} {name} of {user} is made by no Job"
                    yield JudgeFinding("maker", place, what)
    for entry, file, section, options in _identity_sections(cloud):
        name = f"{options.get('user_domain_name', '')}/{options['username']}"
        if ("identity", name, "") not in rows_of_jobs:
            what = f"{file} [{section}]: account {name} is made by no Job"
            yield JudgeFinding("maker", f"{entry.release} {entry}", what)


def _admin(cloud: CloudManifests, keeper: str) -> str:
    """Return the name of the administrator of a server."""
    release, endpoint, account = _SERVERS[keeper]
    auth = cloud.values[release]["endpoints"][endpoint]["auth"]
    return str(auth[account]["username"])


def _made(cloud: CloudManifests, pods: Pods) -> Iterator[tuple[str, str, str]]:
    """Return keeper, user and name of what a Job makes.

    Source: helm-toolkit, templates/manifests/_job-{db-init,rabbit-init,ks-user}*.tpl.
    """
    if pods.owner.kind != "Job":
        return
    for container in pods.containers:
        env = cloud.env(container)
        if "ROOT_DB_CONNECTION" in env:
            for user, _, name in _DATABASE.findall(_connection(cloud, pods, env)):
                yield "database", user, name
        for user, _, name in _BUS.findall(env.get("RABBITMQ_USER_CONNECTION", "")):
            yield "bus", user, name
        if "SERVICE_OS_USERNAME" in env:
            yield "identity", _identity(env, "SERVICE_"), ""
        if pods.owner.name == "keystone-bootstrap" and "OS_USERNAME" in env:
            yield "identity", _identity(env), ""


def _connection(cloud: CloudManifests, pods: Pods, env: Mapping[str, str]) -> str:
    """Return the URL of the database that a Job makes."""
    if "DB_CONNECTION" in env:
        return env["DB_CONNECTION"]
    file = env.get("OPENSTACK_CONFIG_FILE", "").rpartition("/")[2]
    section = env.get("OPENSTACK_CONFIG_DB_SECTION", "")
    option = env.get("OPENSTACK_CONFIG_DB_KEY", "")
    for entry, name, parsed in cloud.settings():
        is_file = name == file and entry.release == pods.owner.release
        if is_file and parsed.has_option(section, option):
            return parsed[section][option]
    return ""
