"""The layouts of terraform/openstack: their inputs, objects and plans."""
