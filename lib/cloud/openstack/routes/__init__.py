"""Pod routes of Neutron: extra routes of a router, address pairs of ports.

Implements `lib.cloud.routes`. Knows the vocabulary and this provider's HTTP client, no
flow and no other protocol. May be imported by what bundles the cloud.
"""
