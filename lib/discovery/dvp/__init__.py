"""Documents for a cluster on DVP: Secrets, machine templates, objects of the parent.

Pure: documents in, documents out. Imported by lib.discovery's users, such as
`mooring render`; does not import the DVP provider package.
"""
