"""cloud-data-discoverer: publishes the catalog of the cloud in the cluster."""
