"""Requests that the fake has received, and faults that it has next."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One call. verb: as in RBAC.

    resource: the plural. timeout_s: what the caller allowed; no part of equality.
    """

    verb: str
    resource: str
    name: str | None = None
    namespace: str | None = None
    subresource: str | None = None
    timeout_s: float = dataclasses.field(default=0.0, compare=False)

    @property
    def is_write(self) -> bool:
        """True for all but get, list and watch."""
        return self.verb not in ("get", "list", "watch")


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """Fault of the next call that matches; None matches any.

    after: the call is carried out first, and only its answer is lost.
    """

    error: Exception
    verb: str | None = None
    resource: str | None = None
    name: str | None = None
    after: bool = False

    def matches(self, call: Call) -> bool:
        """Report whether it is for this call."""
        return (
            self.verb in (None, call.verb)
            and self.resource in (None, call.resource)
            and self.name in (None, call.name)
        )
