"""Values of the service messaging: RabbitMQ."""

from lib.osdpl.api import model
from lib.osdpl.values import secret_shapes
from lib.osdpl.values.context import Context
from lib.osdpl.values.contract import Contract
from lib.osdpl.values.secret_shapes import Account, Password, Shape
from lib.osdpl.values.service import Chart, Service
from lib.osdpl.values.services import common

VOLUME_SIZE = "10Gi"


def rabbitmq(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart rabbitmq."""
    credentials = context.credentials
    cookie = credentials.text(secret_shapes.OWN, "rabbitmq_erlang_cookie")
    auth = {
        "erlang_cookie": cookie,
        "user": credentials.admin("messaging").values(),
        "guest": {"password": credentials.text(secret_shapes.GUEST, "password")},
    }
    endpoint = {"namespace": context.namespace, "auth": auth}
    volume = {
        "enabled": True,
        "class_name": context.local_storage_class,
        "size": VOLUME_SIZE,
    }
    own = {"endpoints": {"oslo_messaging": endpoint}, "volume": volume}
    # Its public name would need an Ingress that this chart makes without a password.
    off = ("ingress_management", "service_ingress_management")
    manifests = {name: False for name in off if name in contract.manifests}
    return common.join(common.infra(context, contract), own, {"manifests": manifests})


SERVICE = Service(
    name="messaging",
    charts=(
        Chart(
            name="rabbitmq",
            release="openstack-rabbitmq",
            values=rabbitmq,
            replicas={
                "server": (1, 1, 1, 1),
                "prometheus_rabbitmq_exporter": (1, 1, 1, 1),
            },
        ),
    ),
    workload=model.Workload(
        kind=model.Kind.STATEFUL_SET, name="openstack-rabbitmq-rabbitmq"
    ),
    admin=Account("rabbitmq", is_fixed=True),
    own_passwords=(("rabbitmq_erlang_cookie", Password()),),
    secrets=(Shape(name=secret_shapes.GUEST, fields=(("password", Password()),)),),
    features=("messaging", "stacklight"),
    unsupported=(
        "features.messaging.components_with_dedicated_messaging",
        "features.messaging.notifications.external.enabled",
        "features.stacklight.enabled",
    ),
)
