"""Machines of Cluster API on zVirt: VMs of one engine cluster, and their boot disks."""
