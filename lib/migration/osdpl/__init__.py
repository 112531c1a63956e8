"""Migration of an OpenStackDeployment from the reference to osdpl-controller."""
