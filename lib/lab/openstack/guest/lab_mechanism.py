"""Binds every port on any host and calls it ACTIVE, in place of an L2 agent.

Neutron's own `test` driver can't be used: its assertions fail when a binding comes
with an update of the port, as nova's does.
"""

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api


class AnyHostMechanismDriver(api.MechanismDriver):
    """See the module."""

    def initialize(self):
        """Nothing to prepare."""

    @property
    def connectivity(self):
        """Promise plain layer 2, as Open vSwitch does."""
        return portbindings.CONNECTIVITY_L2

    def bind_port(self, context):
        """Bind to the first segment."""
        for segment in context.segments_to_bind:
            context.set_binding(
                segment[api.ID],
                portbindings.VIF_TYPE_OVS,
                {portbindings.CAP_PORT_FILTER: True},
                status=constants.PORT_STATUS_ACTIVE,
            )
            return
