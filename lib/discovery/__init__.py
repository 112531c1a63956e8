"""The flow that publishes the catalog of a cloud in the cluster.

Also the pure functions that convert configuration to Secrets and machine templates.
Uses the cloud vocabulary and lib.kube; never imports a provider package.
"""
