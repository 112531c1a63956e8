"""Values of the service dashboard: Horizon."""

from lib.osdpl.api import model
from lib.osdpl.values import secret_shapes
from lib.osdpl.values.context import Context
from lib.osdpl.values.contract import Contract
from lib.osdpl.values.secret_shapes import Password
from lib.osdpl.values.service import Chart, Service
from lib.osdpl.values.services import common

_BEHIND_TLS = {
    "secure_proxy_ssl_header": True,
    "csrf_cookie_secure": "True",
    "session_cookie_secure": "True",
    "session_cookie_httponly": "True",
    "disallow_iframe_embed": "True",
}
"""The public name is https, and TLS ends before the pod: without the header Django
takes the Origin of the login form for another site, and refuses it. As in the
reference."""


def horizon(context: Context, contract: Contract) -> model.Tree:
    """Return the values of the chart horizon."""
    secret = secret_shapes.service_secret("dashboard")
    key = context.credentials.text(secret, "secret_key")
    settings = {"config": {"horizon_secret_key": key, **_BEHIND_TLS}}
    own = {"conf": {"horizon": {"local_settings": settings}}}
    return common.join(common.openstack(context, contract, "dashboard"), own)


SERVICE = Service(
    name="dashboard",
    charts=(
        Chart(
            name="horizon",
            release="openstack-horizon",
            values=horizon,
            needs=("database", "memcached", "identity"),
            replicas={"server": (1, 2, 3, 5)},
            budgets={"horizon": (0, 1, 2, 2)},
            counted={"horizon": "server"},
        ),
    ),
    user="horizon",
    accounts=("horizon", "test"),
    passwords=(("secret_key", Password()),),
    endpoints={"dashboard": ("horizon", "web")},
    features=("horizon",),
    unsupported=(
        "features.horizon.themes",
        "features.horizon.motd",
        "features.horizon.default_theme",
    ),
)
