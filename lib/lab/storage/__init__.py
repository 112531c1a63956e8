"""Volumes on the lab's real node: its disks, its programs, and the user of a volume."""
