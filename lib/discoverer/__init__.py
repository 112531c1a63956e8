"""The edge of discovery: a daemon's flags, metrics, servers and cycles.

What is discovered and published is the flow's, lib/discovery; which cloud is read is
the entry point's.
"""
