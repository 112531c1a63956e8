"""Instances: servers of Nova and ports of Neutron become instances of the model."""
