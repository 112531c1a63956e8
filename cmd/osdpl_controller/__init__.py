"""osdpl-controller: turns an OpenStackDeployment into the helm releases of a cloud."""
