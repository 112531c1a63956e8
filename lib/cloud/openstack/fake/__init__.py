"""Octavia and Neutron in memory, behind the real client: for tests only.

`session.FakeSession` takes the place of the HTTP session, so everything above it is
the code that runs in the field. Faults, slowness and crashes are injected there. The
contract suite of the lab holds it to the real services' answers.
"""
