"""Sizes: replicas and limits of the services, as values of their charts.

Replicas, disruption budgets and pools are those of the reference; worker processes and
time-outs of agents are those of the charts. A size is a layer
below the spec, so spec.services.<service>.<chart>.values overrides it.
"""

from typing import Any

from lib.osdpl.api import merge, model

ORDER = ("single", "tiny", "small", "medium")

_REPLICAS: dict[tuple[str, str], dict[str, tuple[int, int, int, int]]] = {
    ("database", "mariadb"): {
        "server": (1, 3, 3, 3),
        "controller": (1, 1, 1, 1),
        "db_controller": (1, 1, 1, 1),
    },
    ("messaging", "rabbitmq"): {
        "server": (1, 1, 1, 1),
        "prometheus_rabbitmq_exporter": (1, 1, 1, 1),
    },
    ("memcached", "memcached"): {"server": (1, 3, 3, 3)},
    ("coordination", "etcd"): {"etcd": (1, 3, 3, 3)},
    ("identity", "keystone"): {"api": (1, 3, 6, 15)},
    ("image", "glance"): {"api": (1, 3, 3, 3)},
    ("placement", "placement"): {"api": (1, 3, 4, 4)},
    ("networking", "neutron"): {
        "server": (1, 3, 3, 12),
        "rpc_server": (1, 3, 3, 12),
        "ironic_agent": (1, 1, 1, 1),
    },
    ("compute", "nova"): {
        "osapi": (1, 3, 6, 15),
        "api_metadata": (1, 3, 3, 3),
        "conductor": (1, 3, 3, 3),
        "scheduler": (1, 3, 3, 7),
        "novncproxy": (1, 3, 3, 3),
        "spiceproxy": (1, 3, 3, 3),
        "serialproxy": (1, 3, 3, 3),
        "compute_ironic": (1, 1, 1, 1),
    },
    ("dashboard", "horizon"): {"server": (1, 2, 3, 5)},
}
"""Replicas by chart and component, in the order of the sizes."""

_BUDGETS: dict[tuple[str, str], dict[str, tuple[int, int, int, int]]] = {
    ("database", "mariadb"): {"mariadb": (0, 2, 2, 2)},
    ("identity", "keystone"): {"api": (0, 2, 2, 2)},
    ("image", "glance"): {"api": (0, 2, 2, 2)},
    ("placement", "placement"): {"api": (0, 2, 2, 2)},
    ("networking", "neutron"): {"server": (0, 2, 2, 2)},
    ("compute", "nova"): {"osapi": (0, 2, 2, 2), "metadata": (0, 2, 2, 2)},
    ("dashboard", "horizon"): {"horizon": (0, 1, 2, 2)},
}
"""min_available of the PodDisruptionBudgets."""

_COUNTED = {"mariadb": "server", "metadata": "api_metadata", "horizon": "server"}
"""Replicas that a budget is about, where the names differ."""

_POOL = {
    "max_pool_size": 10,
    "max_retries": -1,
    "max_overflow": 30,
    "connection_recycle_time": 300,
}
_POOLS = {
    ("identity", "keystone"): ("database",),
    ("image", "glance"): ("database",),
    ("networking", "neutron"): ("database",),
    ("compute", "nova"): ("database", "api_database"),
}
"""Sections of the configuration that hold the pool of a database."""


def size(name: str) -> model.Tree:
    """Return the layer of a size."""
    column = ORDER.index(name)
    services: dict[str, Any] = {}
    for (service, chart), replicas in _REPLICAS.items():
        values = _values((service, chart), replicas, column)
        services.setdefault(service, {})[chart] = {"values": values}
    return {"services": services}


def fit(spec: model.Tree, written: model.Tree) -> model.Tree:
    """Return a spec whose budgets let a Node be drained: one replica less at most.

    written: as the user wrote it; a budget of the user is kept.
    """
    fitted = spec
    for (service, chart), budgets in _BUDGETS.items():
        path = ("services", service, chart, "values", "pod")
        own = _at(written, (*path, "lifecycle", "disruption_budget")) or {}
        replicas = _at(spec, (*path, "replicas")) or {}
        minimum = _at(spec, (*path, "lifecycle", "disruption_budget")) or {}
        for name in budgets:
            count = replicas.get(_COUNTED.get(name, name))
            least = (minimum.get(name) or {}).get("min_available")
            if name in own or not isinstance(count, int) or not isinstance(least, int):
                continue
            if least > max(count - 1, 0):
                budget: Any = {name: {"min_available": max(count - 1, 0)}}
                for key in reversed((*path, "lifecycle", "disruption_budget")):
                    budget = {key: budget}
                fitted = merge.merge(fitted, budget)
    return fitted


def _at(tree: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _values(
    key: tuple[str, str], replicas: dict[str, tuple[int, int, int, int]], column: int
) -> model.Tree:
    pod: dict[str, Any] = {
        "replicas": {name: counts[column] for name, counts in replicas.items()}
    }
    budgets = _BUDGETS.get(key)
    if budgets:
        minimum = {name: {"min_available": of[column]} for name, of in budgets.items()}
        pod["lifecycle"] = {"disruption_budget": minimum}
    values: model.Tree = {"pod": pod}
    pools = _POOLS.get(key)
    if pools:
        pool = dict(_POOL)
        if key[1] == "neutron":
            pool["max_overflow"] = 10 if column == 0 else 70
        values["conf"] = {key[1]: {section: dict(pool) for section in pools}}
    return values
