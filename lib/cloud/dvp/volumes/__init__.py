"""Volumes of DVP: VirtualDisks, hot-plugged by attachment objects of the parent.

Rules: all reads are of watched stores; each write is one request. disk_names.py,
disk_parameters.py, disk_serial.py and translate.py are pure; cloud.py implements the
protocol.
"""
