"""Values of the service placement."""

from lib.osdpl.api import model
from lib.osdpl.values.context import Context
from lib.osdpl.values.contract import Contract
from lib.osdpl.values.service import Chart, Service
from lib.osdpl.values.services import common


def placement(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart placement."""
    own: model.Tree = {}
    if "compute" in context.get("features.services", ()):
        # The database that placement was once part of belongs to Nova.
        user = context.credentials.database("compute").values()
        own = {"endpoints": {"oslo_db": {"auth": {"nova_api": user}}}}
    base = common.openstack(context, contract, "placement")
    return common.join(base, own, common.program(context, "placement"))


SERVICE = Service(
    name="placement",
    charts=(
        Chart(
            name="placement",
            release="openstack-placement",
            values=placement,
            needs=("database", "memcached", "identity"),
            replicas={"api": (1, 3, 4, 4)},
            budgets={"api": (0, 2, 2, 2)},
        ),
    ),
    user="placement",
    accounts=("placement", "test"),
    endpoints={"placement": ("placement", "api")},
)
