"""Configuration files of one of the lab's charts, and what its Jobs make. Pure.

Rules: files, sections and addresses are those that openstack-helm makes from the same
values, as far as an operator decides them; options that only a chart knows are absent.
Texts "<<X>>" are actions of helm, as in `chart_objects`.
"""

from collections.abc import Iterator, Mapping

from lib.lab.osdpl.contract import Chart, Job

Json = dict[str, object]

_AGENTS = ("dhcp_agent", "l3_agent", "metadata_agent", "ovn_metadata_agent")
_PLUGINS = ("ml2_conf", "openvswitch_agent")
_FILES: Mapping[str, Mapping[str, str]] = {
    "glance": {"glance-api.conf": "glance"},
    "keystone": {"keystone.conf": "keystone"},
    "neutron": {
        "neutron.conf": "neutron",
        **{f"{name}.ini": name for name in _AGENTS},
        **{f"{name}.ini": f"plugins.{name}" for name in _PLUGINS},
    },
    "nova": {"nova.conf": "nova"},
    "placement": {"placement.conf": "placement"},
}
"""Path below `conf` by configuration file, by chart."""
_SECTIONS = {
    "oslo_db": ("database", ""),
    "oslo_db_api": ("api_database", "_api"),
    "oslo_db_cell0": ("", "_cell0"),
}
"""Section of nova.conf, and end of the name of the database, by endpoint. The database
of cell 0 is in no file: nova-manage is given its address."""
_DOMAIN = ("user_domain_name", "project_domain_name")
_ACCOUNT = ("username", "password", "region_name", "project_name", *_DOMAIN)


def files(chart: Chart) -> dict[str, str]:
    """Return the configuration files of a chart."""
    rows = _FILES.get(chart.name, {})
    result = {}
    for name, path in rows.items():
        computed = _computed(chart) if path == chart.name else "dict"
        result[name] = (
            f'<<include "lab.oslo_conf" (list $ "{path}" ({computed})) | quote>>'
        )
    return result


def content(chart: Chart) -> dict[str, str]:
    """Return the addresses that the Jobs of a chart read from its Secret."""
    rows = {}
    for endpoint, user in _databases(chart):
        name = _database(chart, endpoint) if user != "admin" else ""
        rows[f"{endpoint}.{user}"] = f"<<{_url(endpoint, user, name)} | quote>>"
    for user in _users(chart, "oslo_messaging"):
        rows[f"oslo_messaging.{user}"] = f"<<{_bus(chart, user)} | quote>>"
    return rows if _is_service(chart) else {}


def job_containers(chart: Chart, job: Job, image: Json) -> list[Json]:
    """Return the containers of a Job, with the addresses of what they make.

    Source: helm-toolkit 2026.1.0, templates/manifests/_job-{db-init-mysql,
    rabbit-init,ks-user}.yaml.tpl; keystone, templates/job-bootstrap.yaml.
    """
    envs = list(_envs(chart, job.name.removeprefix(f"{chart.name}-")))
    if not envs:
        return [{"name": "job", **image}]
    return [
        {"name": f"job-{number}", **image, "env": env}
        for number, env in enumerate(envs)
    ]


def _envs(chart: Chart, job: str) -> Iterator[list[Json]]:
    """Return the environment of each container of a Job."""
    if job == "db-init":
        for endpoint, user in _databases(chart):
            if user != "admin":
                rows = {
                    "ROOT_DB_CONNECTION": f"{endpoint}.admin",
                    "DB_CONNECTION": f"{endpoint}.{user}",
                }
                yield _from_secret(chart, rows)
    if job == "rabbit-init":
        rows = {
            "RABBITMQ_ADMIN_CONNECTION": "oslo_messaging.admin",
            "RABBITMQ_USER_CONNECTION": f"oslo_messaging.{chart.name}",
        }
        yield _from_secret(chart, rows)
    accounts = {"ks-user": "SERVICE_OS_", "bootstrap": "OS_"}
    prefix = accounts.get(job, "")
    for account in _users(chart, "identity") if prefix else ():
        if (account == "admin") == (job == "bootstrap"):
            path = f"endpoints.identity.auth.{account}"
            names = {f"{prefix}{key.upper()}": f"{path}.{key}" for key in _ACCOUNT}
            yield _from_secret(chart, names)


def _from_secret(chart: Chart, keys: Mapping[str, str]) -> list[Json]:
    return [
        {
            "name": name,
            "valueFrom": {"secretKeyRef": {"name": f"{chart.name}-etc", "key": key}},
        }
        for name, key in keys.items()
    ]


def _is_service(chart: Chart) -> bool:
    return bool(_users(chart, "identity"))


def _users(chart: Chart, endpoint: str) -> list[str]:
    """Return the accounts of a chart at an endpoint."""
    prefix, suffix = f"endpoints.{endpoint}.auth.", ".password"
    return [
        path.removeprefix(prefix).removesuffix(suffix)
        for path in chart.public
        if path.startswith(prefix) and path.endswith(suffix)
    ]


def _databases(chart: Chart) -> list[tuple[str, str]]:
    return [
        (endpoint, user) for endpoint in _SECTIONS for user in _users(chart, endpoint)
    ]


def _database(chart: Chart, endpoint: str) -> str:
    return f"{chart.name}{_SECTIONS[endpoint][1]}"


def _url(endpoint: str, user: str, name: str) -> str:
    return f'include "lab.database" (list $ "{endpoint}" "{user}" "{name}")'


def _bus(chart: Chart, user: str) -> str:
    return f'include "lab.bus" (list $ "{user}" "{chart.name}")'


def _computed(chart: Chart) -> str:
    """Return the sections that follow from endpoints, as an expression of helm."""
    sections: dict[str, dict[str, str]] = {}
    for endpoint, user in _databases(chart):
        section = _SECTIONS[endpoint][0]
        if section and user != "admin":
            url = _url(endpoint, user, _database(chart, endpoint))
            sections[section] = {"connection": f"({url})"}
    if _users(chart, "oslo_messaging"):
        sections["DEFAULT"] = {"transport_url": f"({_bus(chart, chart.name)})"}
    if chart.name in _users(chart, "identity"):
        path = f"$.Values.endpoints.identity.auth.{chart.name}"
        sections["keystone_authtoken"] = {
            "auth_type": '"password"',
            "auth_url": '(include "lab.url" (list $ "keystone-api" "5000/v3"))',
            **{key: f"{path}.{key}" for key in _ACCOUNT},
            "memcached_servers": '(include "lab.cache" $)',
            "memcache_secret_key": (
                "$.Values.endpoints.oslo_cache.auth.memcache_secret_key"
            ),
            "memcache_security_strategy": '"ENCRYPT"',
        }
    parts = [f'"{name}" ({_dict(rows)})' for name, rows in sections.items()]
    return f"dict {' '.join(parts)}"


def _dict(rows: Mapping[str, str]) -> str:
    return "dict " + " ".join(f'"{key}" {value}' for key, value in rows.items())
