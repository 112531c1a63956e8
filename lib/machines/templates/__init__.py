"""The flow that shows in machine templates what a node of them has.

The autoscaler of Cluster API reads it to scale a node group from zero, when no node of
the group shows it.
"""
