"""The messages of the Container Storage Interface, version 1.12.0, made from csi.proto.

csi.proto and LICENSE (Apache-2.0) are those of the Go module
github.com/container-storage-interface/spec v1.12.0; generate.py makes the rest. Nothing
here is written by hand but these two modules; csi_pb2 stays as the generator writes it,
so no formatter may be let loose on this folder.
"""
