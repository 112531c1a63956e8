"""Load balancers that are written only as far as somebody permits."""

import math

from lib.cloud import load_balancers as model
from lib.cloud import steps
from lib.daemon import passing
from lib.kube import guarded


class Permitted(passing.LoadBalancers):
    """Passes each call on; each write needs a permit.

    Who loses the Lease writes no more, and a Lease is released only when no write is
    under way: the same holds for the cloud as for the API server.
    """

    def __init__(self, balancers: model.LoadBalancers, permit: guarded.Permit) -> None:
        super().__init__(lambda: balancers)
        self._permit = permit

    def apply(self, step: steps.Step, within_s: float = math.inf) -> steps.StepResult:
        """See the protocol; no write is sent after the end of the Lease.

        Raises:
            KubeError: it is not permitted, and was not sent.
        """
        with self._permit(f"{step.verb} {' / '.join(step.path)}") as left_s:
            return super().apply(step, min(within_s, left_s))
