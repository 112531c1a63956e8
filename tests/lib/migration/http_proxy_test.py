"""`global.proxy`, from the variables that Deployments of the reference have."""

import datetime
from collections.abc import Mapping
from typing import Any

import pytest

from lib.kube import resources
from lib.kube.fake import api as fake_api
from lib.migration import changeover, http_proxy, reference
from lib.migration.changed_items import ChangedItem

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
PROXY = "http://proxy:3128"
PASSWORD = "s3cr3t"
WITH_PASSWORD = f"http://user:{PASSWORD}@proxy:3128"
CREDENTIALS = "a URL with a user name or password, which the chart rejects,"
MANAGER = "cloud-controller-manager"
CONTROLLER = "csi-controller"
DISCOVERER = "cloud-data-discoverer"
Env = Mapping[str, str | None]


def observe(env_of: Mapping[str, Env]) -> reference.Observed:
    """Read a cluster. env_of: by app; a value that is None is in a Secret."""
    api = fake_api.FakeApi(lambda: NOW)
    for app, env in env_of.items():
        source = {"secretKeyRef": {"name": "proxy", "key": "url"}}
        variables: list[dict[str, Any]] = [
            (
                {"name": name, "valueFrom": source}
                if value is None
                else {"name": name, "value": value}
            )
            for name, value in env.items()
        ]
        labels = {"module": "cloud-provider-openstack", "app": app}
        pod = {"containers": [{"name": app, "image": "x", "env": variables}]}
        body = {
            "metadata": {"name": app, "namespace": "system", "labels": labels},
            "spec": {"template": {"spec": pod}},
        }
        is_node = app == "csi-node"
        api.put(resources.DAEMON_SETS if is_node else resources.DEPLOYMENTS, body)
    return reference.read(api, 1)


def migrate(env_of: Mapping[str, Env]) -> tuple[Any, list[ChangedItem]]:
    """Return `global.proxy` and the differences of it; no password is in anything."""
    observed = observe(env_of)
    planned = changeover.plan(observed, ())
    assert planned is not None
    assert PASSWORD not in f"{observed!r} {planned!r}"
    differences = [row for row in planned.differences if "proxy" in row.subject]
    print(*differences, sep="\n")
    return planned.values["global"].get("proxy"), differences


def both(env: Mapping[str, str]) -> dict[str, str]:
    """Return variables in both cases of letters, as Deckhouse renders them."""
    return {**env, **{name.lower(): value for name, value in env.items()}}


def test_the_same_proxy_everywhere_is_the_value() -> None:
    """Without the entries that the chart adds; csi-node has no proxy in it."""
    hosts = "127.0.0.1,169.254.169.254,cluster.local,10.111.0.0/16,10.222.0.0/16"
    env = both({"HTTP_PROXY": PROXY, "HTTPS_PROXY": PROXY, "NO_PROXY": hosts})
    apps = (MANAGER, CONTROLLER, DISCOVERER, "csi-node")
    value, differences = migrate(dict.fromkeys(apps, env))
    assert value == {
        "httpProxy": PROXY,
        "httpsProxy": PROXY,
        "noProxy": ["10.111.0.0/16", "10.222.0.0/16"],
    }
    assert differences == []


@pytest.mark.parametrize("env", [{}, {"NO_PROXY": "corp"}, {"HTTP_PROXY": ""}])
def test_without_a_proxy_there_is_no_value(env: Env) -> None:
    assert migrate({MANAGER: env, "csi-node": {"HTTP_PROXY": PROXY}}) == (None, [])


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"https_proxy": PROXY, "no_proxy": "corp"}, [PROXY, ["corp"]]),
        ({"HTTPS_PROXY": PROXY, "https_proxy": "http://other"}, [PROXY]),
        ({"HTTPS_PROXY": "", "https_proxy": PROXY}, [PROXY]),
        ({"HTTPS_PROXY": "proxy:3128"}, [PROXY]),
        (
            {"HTTPS_PROXY": PROXY, "NO_PROXY": " .svc, a ,,a,.b,svc"},
            [PROXY, ["a", ".b"]],
        ),
    ],
)
def test_spellings_that_the_reference_accepts(env: Env, expected: list[Any]) -> None:
    fields = ("httpsProxy", "noProxy")
    assert migrate({MANAGER: env}) == (dict(zip(fields, expected, strict=False)), [])


def test_workloads_that_differ_are_listed() -> None:
    """The first workload states the value; one without a proxy has no noProxy."""
    value, differences = migrate(
        {
            CONTROLLER: {"HTTPS_PROXY": "http://other:3128", "NO_PROXY": "b,a"},
            DISCOVERER: {"NO_PROXY": "c"},
            MANAGER: {"HTTPS_PROXY": PROXY, "NO_PROXY": "a"},
        }
    )
    assert value == {"httpsProxy": PROXY, "noProxy": ["a"]}
    https, after = "global.proxy.httpsProxy", f"{PROXY} for all"
    assert differences == [
        ChangedItem(https, f"http://other:3128 in Deployment {CONTROLLER}", after),
        ChangedItem(https, f"none in Deployment {DISCOVERER}", after),
        ChangedItem(
            "global.proxy.noProxy", f"a, b in Deployment {CONTROLLER}", "a for all"
        ),
    ]


def test_the_order_of_hosts_is_no_difference() -> None:
    env = {"HTTPS_PROXY": PROXY}
    value, differences = migrate(
        {MANAGER: {**env, "NO_PROXY": "b,a"}, CONTROLLER: {**env, "NO_PROXY": "a,b"}}
    )
    assert value == {"httpsProxy": PROXY, "noProxy": ["b", "a"]}
    assert differences == []


def test_a_password_is_neither_a_value_nor_shown() -> None:
    env = both({"HTTPS_PROXY": WITH_PASSWORD, "NO_PROXY": "10.111.0.0/16"})
    value, differences = migrate({MANAGER: env, CONTROLLER: env})
    assert value == {"noProxy": ["10.111.0.0/16"]}
    assert differences == [
        ChangedItem(
            "global.proxy.httpsProxy",
            f"{CREDENTIALS} in Deployment {MANAGER}, Deployment {CONTROLLER}",
            "not set",
        )
    ]


def test_a_workload_without_password_states_the_value() -> None:
    value, (row,) = migrate(
        {MANAGER: {"HTTP_PROXY": WITH_PASSWORD}, CONTROLLER: {"HTTP_PROXY": PROXY}}
    )
    assert value == {"httpProxy": PROXY}
    assert row.before == f"{CREDENTIALS} in Deployment {MANAGER}"
    assert row.after == f"{PROXY} for all"


@pytest.mark.parametrize(
    ("env", "before"),
    [
        ({"HTTP_PROXY": f"user:{PASSWORD}@proxy:3128"}, CREDENTIALS),
        ({"HTTP_PROXY": f"socks5://proxy/{PASSWORD}"}, "a URL that the chart rejects"),
        ({"HTTP_PROXY": f"{PROXY}/?key={PASSWORD}"}, "a URL that the chart rejects"),
        ({"HTTP_PROXY": "$(NODE):3128"}, "a URL that the chart rejects"),
        ({"HTTP_PROXY": None}, "a value from another object, which is not read,"),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "*.corp,a"}, "*.corp, a"),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": f"a,x:{PASSWORD}@b"}, "[redacted], a"),
        (
            {"HTTPS_PROXY": PROXY, "NO_PROXY": None},
            "a value from another object, which is not read,",
        ),
    ],
)
def test_what_the_chart_rejects_is_a_difference(env: Env, before: str) -> None:
    value, (row,) = migrate({MANAGER: env})
    assert row.before == f"{before} in Deployment {MANAGER}"
    hosts = ["a"] if "a" in (env.get("NO_PROXY") or "") else []
    assert row.after == ("a for all" if hosts else "not set")
    assert (value or {}).get("noProxy", []) == hosts
    assert "httpProxy" not in (value or {})


def test_each_entry_that_the_chart_adds_is_omitted() -> None:
    hosts = ",".join(http_proxy.ALWAYS_DIRECT)
    env = {"HTTP_PROXY": PROXY, "NO_PROXY": hosts}
    assert migrate({MANAGER: env}) == ({"httpProxy": PROXY}, [])
