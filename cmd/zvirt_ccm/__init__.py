"""zvirt-ccm: the cloud controller manager of clusters in VMs of zVirt."""
