"""capz: the Cluster API infrastructure provider of zVirt."""
