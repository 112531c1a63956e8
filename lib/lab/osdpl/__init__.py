"""Lab of the OpenStack operator: a chart set, simulated workloads and Nodes."""
