"""Problems of a cluster and its cloud: facts are read, then judged.

Reads by lib.kube and the cloud vocabulary (lib/cloud/checkup.py); knows no provider and
no flow. Entry points import it.
"""
