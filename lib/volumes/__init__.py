"""The flow of volumes: fulfils the requests of CSI's controller service.

Each call has one request for one volume; `flow.VolumesFlow.settle` repeats observe,
decide and act until the request is fulfilled, refused, or its deadline exceeded. Knows
the vocabulary of clouds and no message of CSI. May be imported by lib/csi and the CSI
components.
"""
