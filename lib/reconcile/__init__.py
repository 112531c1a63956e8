"""The runtime: queue, backoff, workers, outcome and periodic passes.

Knows neither clouds nor Kubernetes objects; flows import it.
"""
