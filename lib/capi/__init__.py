"""Shared code of the Cluster API infrastructure providers of all clouds.

A provider is a list of daemon parts: the flows of machines and of clusters. Imports no
cloud; entry points choose one.
"""
