"""What an engine offers to a cluster: storage domains, and the cluster's disks."""
