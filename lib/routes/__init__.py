"""The flow that keeps routes to the pods of all Nodes, and records which it owns.

Knows the vocabulary of `lib/cloud` and the runtime, and no cloud. Imported by `lib/ccm`
and by components.
"""
