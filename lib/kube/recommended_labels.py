"""Labels that Kubernetes recommends for the objects of an application.

Source: Kubernetes, Recommended Labels.
"""

NAME = "app.kubernetes.io/name"
"""Name of the component; its objects may have other names."""
