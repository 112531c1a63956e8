"""Instances: the parent's VMs become instances of the model."""
