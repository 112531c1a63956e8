"""The flow that provisions the infrastructure cluster of a Cluster API provider.

What a cloud has to provide for a cluster as a whole is little: an endpoint, failure
domains, and at the end a cleanup of what machines have left.
"""
