"""cloud-data-discoverer: tells the cluster what its cloud offers."""
