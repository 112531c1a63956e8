"""The lab's Kubernetes: control plane, kubelet, simulated Nodes, objects and files."""
