"""Instances: VMs of an engine become instances of the model."""
