"""Values of the service database: MariaDB."""

from lib.osdpl.api import model
from lib.osdpl.values import secret_shapes
from lib.osdpl.values.context import Context
from lib.osdpl.values.contract import Contract
from lib.osdpl.values.secret_shapes import Account, Password, Shape
from lib.osdpl.values.service import Chart, Service
from lib.osdpl.values.services import common

VOLUME_SIZE = "20Gi"

WORKLOAD = model.Workload(kind=model.Kind.STATEFUL_SET, name="mariadb-server")


def mariadb(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart mariadb."""
    own = {"endpoints": {"oslo_db": _users(context), "identity": _identity(context)}}
    volume = {
        "enabled": True,
        "class_name": context.local_storage_class,
        "size": VOLUME_SIZE,
        "backup": {"enabled": False, "class_name": context.storage_class},
    }
    exporter = {"monitoring": {"prometheus": {"enabled": False}}}
    base = common.join(common.infra(context, contract), common.spread(context))
    return common.join(base, own, {"volume": volume}, exporter)


def _users(context: Context) -> model.Tree:
    galera = {
        name: context.credentials.user(secret_shapes.GALERA, name).values()
        for name in ("sst", "audit", "exporter")
    }
    root = context.credentials.admin("database").values()
    return {"namespace": context.namespace, "auth": {"admin": root, **galera}}


def _identity(context: Context) -> model.Tree:
    backup = context.credentials.user(secret_shapes.GALERA, "backup")
    account = {
        "role": "admin",
        "region_name": context.region,
        "username": "mariadb-backup-user",
        "password": backup.password,
        "project_name": "service",
        "user_domain_name": "service",
        "project_domain_name": "service",
    }
    auth = {"admin": common.admin(context), "mariadb": account}
    return {"namespace": context.namespace, "auth": auth}


SERVICE = Service(
    name="database",
    charts=(
        Chart(
            name="mariadb",
            release="openstack-mariadb",
            values=mariadb,
            replicas={
                "server": (1, 3, 3, 3),
                "controller": (1, 1, 1, 1),
                "db_controller": (1, 1, 1, 1),
            },
            budgets={"mariadb": (0, 2, 2, 2)},
            counted={"mariadb": "server"},
        ),
    ),
    workload=WORKLOAD,
    admin=Account("root", is_fixed=True),
    secrets=(
        Shape(
            name=secret_shapes.GALERA,
            fields=(
                ("sst", Account("sst", 3)),
                ("exporter", Account("exporter", 8)),
                ("audit", Account("audit", 8)),
                ("backup", Account("backup", 8)),
                ("openssl_kek", Password(64)),
            ),
        ),
    ),
    features=("database",),
    unsupported=(
        "features.database.backup.enabled",
        "features.database.cleanup.nova.enabled",
        "features.database.cleanup.glance.enabled",
        "features.database.cleanup.horizon.enabled",
    ),
)
