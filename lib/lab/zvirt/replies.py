"""Answers to requests that created, changed or started something. Source: 1.2."""

from ovirtsdk4 import types, writer

from lib.lab.zvirt import xml_documents
from lib.lab.zvirt.calls import ApiAnswer, ApiCall
from lib.lab.zvirt.engine_core import Engine
from lib.lab.zvirt.records import EngineRecord


def created(engine: Engine, call: ApiCall, record: EngineRecord) -> ApiAnswer:
    """Return 201 with the object."""
    del call
    engine.rule("call-created")
    entity = record.entity
    return ApiAnswer(201, xml_documents.write(entity), location=entity.href)


def accepted(
    engine: Engine, call: ApiCall, record: EngineRecord, job: EngineRecord
) -> ApiAnswer:
    """Return 202 with the object and its creation_status, or 201 after its job."""
    entity = record.entity
    if call.blocks:
        engine.rule("call-expect-created")
        body = xml_documents.write(entity)
        return ApiAnswer(201, body, location=entity.href, job=job.key, entity=entity)
    engine.rule("call-accepted")
    head, tag, tail = xml_documents.write(entity).rpartition(b"</")
    status = b"<creation_status>pending</creation_status>"
    path = f"{entity.href}/creation_status/{job.key}".encode()
    link = b'<link href="' + path + b'" rel="creation_status"/>'
    return ApiAnswer(202, head + status + link + tag + tail, location=entity.href)


def shown(
    engine: Engine, call: ApiCall, record: EngineRecord, job: EngineRecord | None = None
) -> ApiAnswer:
    """Return 200 with the object; 202 where the client does not wait for a job."""
    status = 202 if job is not None and call.is_async else 200
    if status == 202:
        engine.rule("call-async")
    return ApiAnswer(status, xml_documents.write(record.entity))


def done(engine: Engine, call: ApiCall, title: str) -> ApiAnswer:
    """Return the answer of an action whose job ends immediately."""
    job = engine.begin_job(title, call.correlation_id)
    engine.end_job(job.key)
    engine.rule("call-async" if call.is_async else "call-action")
    state = "pending" if call.is_async else "complete"
    reference = types.Job(id=job.key)
    reference.href = job.entity.href
    action = types.Action(status=state, job=reference)
    return ApiAnswer(
        202 if call.is_async else 200, writer.Writer.write(action).encode()
    )
