"""The edge towards CSI: gRPC server, codes, RPCs as requests to `lib/volumes`.

Messages of the specification are known here and nowhere else. May be imported by the
CSI components only; knows no cloud.
"""
