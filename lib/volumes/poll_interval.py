"""How often the cloud is polled for a CSI call that waits. Pure."""


def after_s(waited_s: float) -> float:
    """Return the seconds until the next poll: the longer it takes, the later."""
    if waited_s < 30:
        return 1.0
    return 2.0 if waited_s < 120 else 5.0
