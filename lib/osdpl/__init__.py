"""OpenStack operator: one OpenStackDeployment becomes the helm releases of a cloud."""
