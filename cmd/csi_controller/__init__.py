"""csi-controller: the controller plugin of the CSI drivers."""
