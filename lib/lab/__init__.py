"""Local proving grounds: a real control plane and a real OpenStack, on loopback.

Used by `mooring lab` and by the tests; no daemon imports it. One folder for each part;
here is what all of them know: where a lab is, and the one error. What tests alone need
is in `tests/harness`.
"""
