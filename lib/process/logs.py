"""Structured logs: JSON, or pretty on a terminal; nothing is set up at import.

Rules: an entry is a constant lower-case text and keys. What is a secret by its
key or by its form is removed last. Tracebacks never show local variables.
"""

import dataclasses
import logging
import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

import structlog

from lib.process import redaction

DEBUG_FROM_V = 4
"""From this -v on, entries of level debug are shown."""


@dataclasses.dataclass(frozen=True, slots=True)
class LogSettings:
    """How to log.

    component: in every entry. verbosity: klog's -v. is_pretty: for people; None for
    "when `out` is a terminal". out: standard error by default. is_quiet: warnings and
    errors alone.
    """

    component: str
    verbosity: int = 0
    is_pretty: bool | None = None
    out: TextIO | None = None
    is_quiet: bool = False


def configure(settings: LogSettings) -> None:
    """Set logging up for the whole process; call it once, first thing.

    The standard library's logging goes the same way, third parties' from warning on.
    """
    out = sys.stderr if settings.out is None else settings.out
    level = logging.DEBUG if settings.verbosity >= DEBUG_FROM_V else logging.INFO
    level = logging.WARNING if settings.is_quiet else level
    shared = _shared(settings.component)
    structlog.configure(
        processors=[
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *_last(settings, out),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                *shared,
                _add_logger_name,
            ],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_last(settings, out),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.captureWarnings(True)


def get(name: str) -> structlog.stdlib.BoundLogger:
    """Return a logger whose entries carry `logger_name`; cheap, and safe at import."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(logger_name=name)
    return logger


def _shared(component: str) -> list[structlog.typing.Processor]:
    def add_component(
        logger: object, method: str, entry: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        del logger, method
        entry.setdefault("component", component)
        return entry

    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        add_component,
    ]


def _add_logger_name(
    logger: object, method: str, entry: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Add a third party's logger under the same key as our own."""
    del logger, method
    record: logging.LogRecord = entry["_record"]
    entry["logger_name"] = record.name
    return entry


def _last(settings: LogSettings, out: TextIO) -> Sequence[structlog.typing.Processor]:
    pretty = settings.is_pretty
    if pretty is None:
        pretty = out.isatty()
    if pretty:
        renderer: structlog.typing.Processor = structlog.dev.ConsoleRenderer(
            colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    else:
        renderer = structlog.processors.JSONRenderer(default=str)
    # The traceback becomes text first, so that it is searched for secrets as well.
    return (structlog.processors.format_exc_info, redact, renderer)


def redact(
    logger: object, method: str, entry: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Take secrets out of an entry: the processor before the renderer."""
    del logger, method
    return {key: _clean(key, value) for key, value in entry.items()}


def _clean(key: str, value: object) -> object:
    says_something = value is not None and not isinstance(value, bool)
    if says_something and redaction.is_secret(key):
        return redaction.REDACTED
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return redaction.scrub(value)
    if isinstance(value, Mapping):
        return {str(k): _clean(str(k), item) for k, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean("", item) for item in value]
    return redaction.scrub(str(value))
