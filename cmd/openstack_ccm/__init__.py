"""openstack-ccm: the cloud controller manager of OpenStack."""
