"""Outcomes that all decisions on volumes share, and times between steps. Pure."""

from lib.cloud.volumes import Volume, VolumePhase
from lib.volumes import poll_interval
from lib.volumes.csi_codes import Code, RefusedCall
from lib.volumes.model import Action, CallHistory, VolumeOutcome

SOON_S = 0.5
"""Pause before the first read after an action."""
LOST_S = 60.0
"""How long a request of unknown outcome may still be carried out: its time-out."""
START_S = 10.0
"""How long requests of a killed process may still be carried out: within this time
after the start no volume is created, and a missing attachment is not trusted."""
RETRY_S = 5.0
"""An attach or detach without effect is retried after this time..."""
TRIES = 3
"""...at most this number of times in one call."""
PREVIOUS_PROCESS = "a request of the previous process may still be carried out"
READY = frozenset({VolumePhase.AVAILABLE, VolumePhase.IN_USE})


def wait(past: CallHistory, why: str) -> VolumeOutcome:
    """Return that the volume is read again later. why: what is waited for."""
    return VolumeOutcome(
        requeue_after_s=poll_interval.after_s(past.waited_s), waiting_for=why
    )


def act(*actions: Action, why: str, after_s: float = SOON_S) -> VolumeOutcome:
    """Return actions, after which the volume is read again."""
    return VolumeOutcome(actions=actions, requeue_after_s=after_s, waiting_for=why)


def refuse(code: Code, message: str) -> VolumeOutcome:
    """Return the refusal of a request."""
    return VolumeOutcome(failure=RefusedCall(code, message))


def status(volume: Volume) -> str:
    """Return the status of a volume as the cloud names it, in a sentence."""
    return (
        f"volume {volume.id} is in status {volume.native_phase or volume.phase.value}"
    )


def failed(volume: Volume) -> VolumeOutcome:
    """Return the refusal of a request for a volume that FAILED."""
    tail = f": {volume.message}" if volume.message else ""
    text = f"{status(volume)}{tail}; the cloud administrator must repair it"
    return refuse(Code.INTERNAL, text)
