"""Values of the service coordination: etcd."""

from lib.osdpl.api import model
from lib.osdpl.values.context import Context
from lib.osdpl.values.contract import Contract
from lib.osdpl.values.service import Chart, Service
from lib.osdpl.values.services import common

VOLUME_SIZE = "5Gi"


def etcd(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart etcd."""
    volume = {
        "enabled": True,
        "class_name": context.local_storage_class,
        "size": VOLUME_SIZE,
    }
    endpoint = {"etcd": {"namespace": context.namespace}}
    own = {"volume": volume, "endpoints": endpoint}
    base = common.infra(context, contract)
    return common.join(base, common.spread(context), own)


SERVICE = Service(
    name="coordination",
    charts=(
        Chart(
            name="etcd",
            release="etcd",
            values=etcd,
            replicas={"etcd": (1, 3, 3, 3)},
        ),
    ),
)
