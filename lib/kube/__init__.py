"""The Kubernetes edge: client, watched store, patches, events and Lease election.

The only room that may import the kubernetes package. Flows and entry points import it.
"""
