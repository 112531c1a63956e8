"""What every daemon needs to be one: flags, logs, metrics, probes, HTTPS, shutdown.

Knows neither clouds nor Kubernetes objects; entry points import it, and all who decode
JSON its `decoding`.
"""
