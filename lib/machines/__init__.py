"""The flow that gives every machine object of a Cluster API provider its instance.

Knows the vocabulary of `lib/cloud`, the contract of Cluster API and the runtime, and no
cloud: the kinds of a provider are described by `kinds.Kinds`. Imported by components.
"""
