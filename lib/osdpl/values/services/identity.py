"""Values of the service identity: Keystone."""

from lib.osdpl.api import model
from lib.osdpl.values.context import Context
from lib.osdpl.values.contract import Contract
from lib.osdpl.values.secret_shapes import Account
from lib.osdpl.values.service import Chart, Pool, Service
from lib.osdpl.values.services import common


def keystone(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart keystone."""
    logging = common.program(context, "keystone")
    return common.join(common.openstack(context, contract, "identity"), logging)


SERVICE = Service(
    name="identity",
    charts=(
        Chart(
            name="keystone",
            release="openstack-keystone",
            values=keystone,
            needs=("database", "memcached", "messaging"),
            replicas={"api": (1, 3, 6, 15)},
            budgets={"api": (0, 2, 2, 2)},
            pool=Pool(sections=("database",)),
        ),
    ),
    workload=model.Workload(kind=model.Kind.DEPLOYMENT, name="keystone-api"),
    user="keystone",
    accounts=("keystone", "osctl", "test"),
    admin=Account("admin"),
    endpoints={"identity": ("keystone", "api")},
    features=("keystone",),
    unsupported=(
        "features.keystone.keycloak.enabled",
        "features.keystone.federation.openid.enabled",
        "features.keystone.domain_specific_configuration.enabled",
    ),
)
