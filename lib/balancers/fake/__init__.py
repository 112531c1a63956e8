"""Snapshots of a Service, for tests: building blocks of their tables."""
