"""The zVirt provider: virtual machines and disks of an oVirt Engine, API 4.4 and newer.

Only this package, the lab's simulator and their tests import `ovirtsdk4`.
"""
