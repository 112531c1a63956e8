"""Settings that may change while the controller runs. Pure.

Source: the reference's ini files, sections osctl and helmbundle.
"""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """Times that a reconciliation uses, in seconds.

    ready_timeout_s: after a run of helm, before workloads that are not Ready are
    reported as a failure of an upgrade. ready_delay_s: after a run, before readiness
    counts: the watches have delivered what the run has written by then.
    """

    ready_timeout_s: float = 1200.0
    ready_delay_s: float = 10.0
