"""Machines of Cluster API on DVP: a VM of the parent with its disks and a Secret.

Nothing here waits or polls: all is read from the watched stores of lib/cloud/dvp.
"""
