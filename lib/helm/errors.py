"""The closed set of ways in which helm or a chart source fails.

Messages hold no secret: values that the caller names as secret are removed from helm's
output before it is kept.
"""


class HelmError(Exception):
    """Base of all; subclasses add only meaning.

    is_final: a retry with the same input cannot succeed. Never set for what is known
    from helm's output only: its words change between versions.
    """

    is_final = False


class HelmMissing(HelmError):
    """The helm program is absent, cannot be run, or is too old."""


class Canceled(HelmError):
    """The run was stopped by its caller before it ended."""


class TimedOut(HelmError):
    """The run did not end in time; its process group was killed."""


class Busy(HelmError):
    """The release has a pending operation of another helm process."""


class Unreachable(HelmError):
    """helm could not reach the API server."""


class Forbidden(HelmError):
    """The API server refused helm for lack of permissions."""


class DoesNotRender(HelmError):
    """The chart does not render with these values."""


class NotOwned(HelmError):
    """An object of the chart exists and belongs to another release or program."""


class ImmutableField(HelmError):
    """The upgrade changes a field that the API server does not allow to change."""


class ImmutableChange(ImmutableField):
    """An upgrade was not tried: it changes a field that cannot be changed."""

    is_final = True


class TooLarge(HelmError):
    """The release does not fit into the Secret that helm would keep it in."""

    is_final = True


class NoSpace(HelmError):
    """The values could not be written to the local disk."""


class Failed(HelmError):
    """helm ended with an error of no other class, such as a failed hook Job."""


class MalformedRelease(HelmError):
    """A release Secret cannot be decoded."""


class SourceError(HelmError):
    """Base of the errors of a source of charts."""


class SourceUnreachable(SourceError):
    """The source did not answer, or answered with an error."""


class SourceInvalid(SourceError):
    """The source's address or its content is malformed."""

    is_final = True


class ChartNotFound(SourceError):
    """The source has no chart of that name, or not in that version."""


class DigestMismatch(SourceError):
    """The chart's content is not the one that the digest names."""

    is_final = True
