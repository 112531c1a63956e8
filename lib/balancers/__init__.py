"""The flow that gives every LoadBalancer Service its load balancer.

Knows the vocabulary of `lib/cloud` and the runtime, and no cloud. Imported by `lib/ccm`
and by components.
"""
