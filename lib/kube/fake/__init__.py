"""An in-memory API server, for tests and for walks of a flow.

Implements lib.kube.client.Api, with fault injection and a log of calls.
"""
