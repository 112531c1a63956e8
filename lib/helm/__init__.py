"""Helm as a command: arguments, timeouts, error classes, release state, chart sources.

helm is run with an argument list, never through a shell. What a run changed is read
from the release Secrets, not from its output.
"""
