"""The protocol in memory: disks, file systems and mounts, with faults to inject."""
