"""Kopf, used only to receive events of custom resources.

Handlers put keys into a queue of lib/reconcile. Nothing here decides, writes, retries
or remembers; see docs/decisions/0037-kopf-only-receives-events.md.
"""
