"""Record of an OpenStack service: all that the operator knows about it.

Tables of other modules (releases, gates, presets, sizes, Secrets, fields) are derived
from the records; docs/how-to-develop/add-an-openstack-service.md has the steps.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping

from lib.osdpl.api import model
from lib.osdpl.values.context import Context
from lib.osdpl.values.contract import Contract
from lib.osdpl.values.secret_shapes import Account, Format, Shape
from lib.process import config

Template = Callable[[Context, Contract], model.Tree]
Check = Callable[[Context], Iterator[config.FieldProblem]]

SIZES = ("single", "tiny", "small", "medium")
Counts = tuple[int, int, int, int]
"""Numbers in the order of the sizes."""


def _no_problems(context: Context) -> Iterator[config.FieldProblem]:
    return iter(())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Pools of database connections in the configuration of a program."""

    sections: tuple[str, ...]
    max_overflow: Counts = (30, 30, 30, 30)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart of a service and the release that is installed from it.

    values: function that computes the values. needs: services with a workload that must
    be Ready before helm is run. is_long: its run of helm lasts longer than others.
    replicas: by component. budgets: min_available of PodDisruptionBudgets. counted: the
    component of a budget that has another name. settings: values by path below `conf`,
    one for all sizes or one for each. in_parallel: DaemonSets that are upgraded on
    several Nodes. daemonsets: those that can be overridden on single nodes;
    has_conf_only: their configuration alone.
    """

    name: str
    release: str
    values: Template
    needs: tuple[str, ...] = ()
    is_long: bool = False
    replicas: Mapping[str, Counts] = dataclasses.field(default_factory=dict)
    budgets: Mapping[str, Counts] = dataclasses.field(default_factory=dict)
    counted: Mapping[str, str] = dataclasses.field(default_factory=dict)
    pool: Pool | None = None
    settings: Mapping[str, int | Counts] = dataclasses.field(default_factory=dict)
    in_parallel: tuple[str, ...] = ()
    daemonsets: tuple[str, ...] = ()
    has_conf_only: bool = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service of OpenStack, or one that they need.

    charts: in the order of installation. workload: opens the gates of the releases that
    need this service. preset: the lowest preset with it. defaults: of spec.features.

    user: prefix of its user names; empty: it has no Secret with passwords. accounts: of
    the Identity service. passwords: further fields of that Secret. admin: account of
    its administrator. own_passwords: fields of the Secret that the reference lacks.
    secrets: further ones.

    endpoints: first label of the public name and name of the port. features: keys of
    spec.features without effect if the service is absent; those that the schema
    requires are not among them. node_features: features that nodes cannot override yet.
    unsupported: paths that must be empty or false. problems: other settings that are
    not supported. ceph: settings that require Ceph.
    """

    name: str
    charts: tuple[Chart, ...]
    workload: model.Workload | None = None
    preset: str = "core"
    defaults: model.Tree = dataclasses.field(default_factory=dict)
    user: str = ""
    accounts: tuple[str, ...] = ()
    passwords: tuple[tuple[str, Format], ...] = ()
    admin: Account | None = None
    own_passwords: tuple[tuple[str, Format], ...] = ()
    secrets: tuple[Shape, ...] = ()
    endpoints: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    features: tuple[str, ...] = ()
    node_features: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    problems: Check = _no_problems
    ceph: Check = _no_problems
