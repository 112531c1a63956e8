"""Volumes as disks of an engine, which are attached to the VMs of Nodes."""
