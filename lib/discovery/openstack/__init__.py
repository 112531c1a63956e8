"""Documents for a cluster on OpenStack: Secrets, cloud.conf, machine templates.

Pure: documents in, documents out. Imported by lib.discovery's users, such as
`mooring render`; does not import the OpenStack provider package.
"""
