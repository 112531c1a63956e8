"""Load balancers on DVP: a Service in the parent that selects VMs by a label.

Nothing here waits or polls: all is read from the watched stores of lib/cloud/dvp.
"""
