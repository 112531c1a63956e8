"""Open plans: cloud writes in several steps, each after the gate of the one before.

Generic in the target and in what is written on the Kubernetes object: load balancers
use it, routes and machines can. Knows the vocabulary of clouds and the runtime, no
provider, no flow and no Kubernetes object. May be imported by flows.
"""
