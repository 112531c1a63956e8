"""The flow of volumes: brings about, step by step, what CSI asks for.

A call is a wish for one volume; `flow.VolumesFlow.settle` repeats observe, decide and
act until the wish is fulfilled, refused, or out of time. Knows the vocabulary of clouds
and no message of CSI. May be imported by lib/csi and the CSI components.
"""
