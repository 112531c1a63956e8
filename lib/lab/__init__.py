"""Local proving grounds: a real control plane and a real OpenStack, on loopback.

Used by `mooring lab` and by the tests; no daemon imports it.
"""
