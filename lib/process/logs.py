"""Structured logs: text as klog writes it, or JSON; nothing is set up at import.

Rules: an entry is a constant lower-case text and keys. What is a secret by its
key or by its form is removed last. Tracebacks never show local variables.

Source: k8s.io/klog/v2 (header and key="value" pairs of InfoS); k8s.io/component-base
logs/json (ts in milliseconds, logger, msg, err, v; level is an addition of ours).
"""

import dataclasses
import datetime
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

import structlog

from lib.process import redaction

DEBUG_FROM_V = 4
"""From this -v on, entries of level debug are shown."""
TEXT, JSON = "text", "json"


@dataclasses.dataclass(frozen=True, slots=True)
class LogSettings:
    """How to log.

    component: in every entry. verbosity: klog's -v. format: TEXT or JSON. out: standard
    error by default. is_quiet: errors alone.
    """

    component: str
    verbosity: int = 0
    format: str = TEXT
    out: TextIO | None = None
    is_quiet: bool = False


def configure(settings: LogSettings) -> None:
    """Set logging up for the whole process; call it once, first thing.

    The standard library's logging goes the same way, third parties' from warning on.
    """
    out = sys.stderr if settings.out is None else settings.out
    level = logging.DEBUG if settings.verbosity >= DEBUG_FROM_V else logging.INFO
    level = logging.ERROR if settings.is_quiet else level
    shared = _shared(settings.component)
    last = _last(settings)
    structlog.configure(
        processors=[*shared, structlog.stdlib.PositionalArgumentsFormatter(), *last],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, _add_logger],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *last,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.captureWarnings(True)


def get(name: str) -> structlog.stdlib.BoundLogger:
    """Return a logger whose entries carry `logger`; cheap, and safe at import."""
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
        structlog.processors.TimeStamper(fmt=None, utc=True, key="ts"),
        add_component,
    ]


def _add_logger(
    logger: object, method: str, entry: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Add a third party's logger under the same key as our own."""
    del logger, method
    record: logging.LogRecord = entry["_record"]
    entry["logger_name"] = record.name
    return entry


def _last(settings: LogSettings) -> Sequence[structlog.typing.Processor]:
    # The traceback becomes text first, so that it is searched for secrets as well.
    renderer = _json if settings.format == JSON else _text
    return (structlog.processors.format_exc_info, redact, _name_keys, renderer)


_NAMES = {
    "logger_name": "logger",
    "event": "msg",
    "error": "err",
    "exception": "stacktrace",
}
_FIRST = ("ts", "level", "logger", "component", "msg", "err")


def _name_keys(
    logger: object, method: str, entry: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Rename structlog's keys to those of Kubernetes, in their order."""
    del logger, method
    named = {_NAMES.get(key, key): value for key, value in entry.items()}
    first = {key: named.pop(key) for key in _FIRST if key in named}
    return {**first, **named}


def _json(logger: object, method: str, entry: structlog.typing.EventDict) -> str:
    del logger, method
    shown = {**entry, "ts": round(entry["ts"] * 1000, 3)}
    if entry["level"] in ("info", "debug"):
        shown["v"] = DEBUG_FROM_V if entry["level"] == "debug" else 0
    return json.dumps(shown, default=str, ensure_ascii=False)


_LETTERS = {"warning": "W", "error": "E", "critical": "F"}
_IN_HEADER = frozenset(("ts", "level", "logger", "component", "msg", "stacktrace"))


def _text(logger: object, method: str, entry: structlog.typing.EventDict) -> str:
    """Return the entry as klog writes it; a traceback follows on lines of its own."""
    del logger, method
    at = datetime.datetime.fromtimestamp(entry["ts"], datetime.UTC)
    letter = _LETTERS.get(entry["level"], "I")
    source = entry.get("logger", entry["component"])
    header = f"{letter}{at:%m%d %H:%M:%S.%f} {os.getpid():7} {source}]"
    line = " ".join((header, json.dumps(str(entry["msg"])), *_pairs(entry)))
    trace = entry.get("stacktrace")
    return f"{line}\n{trace}" if trace else line


def _pairs(entry: Mapping[str, object]) -> Iterator[str]:
    for key, value in entry.items():
        if key not in _IN_HEADER:
            yield f"{key}={json.dumps(value, default=str, ensure_ascii=False)}"


def redact(
    logger: object, method: str, entry: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Take secrets out of an entry: before it is rendered."""
    del logger, method
    return {key: _clean(key, value) for key, value in entry.items()}


def _clean(key: str, value: object) -> object:
    holds_text = value is not None and not isinstance(value, bool)
    if holds_text and redaction.is_secret(key):
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
