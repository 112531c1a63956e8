"""What a cluster on OpenStack reads of us: Secrets, cloud.conf, machine templates.

Pure: documents in, documents out. Imported by lib.discovery's users, such as
`mooring render`; knows nothing of the OpenStack provider room.
"""
