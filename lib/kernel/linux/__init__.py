"""The protocol on Linux: /dev, /sys, mountinfo, and one command for each change."""
