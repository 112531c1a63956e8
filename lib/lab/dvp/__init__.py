"""A simulated parent cluster of DVP: a real control plane, and a simulator of VMs."""
