"""The OpenStack provider room: the only one that imports keystoneauth1.

Native words (server, flavor, port) stay inside; `cloud.connect` is its one door, and
`config.read` reads what it needs. Only `cmd` imports this room.
"""
