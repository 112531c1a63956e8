"""csi-node: the node plugin of the CSI drivers."""
