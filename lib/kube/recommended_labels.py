"""Labels that Kubernetes recommends for the objects of an application.

Source: Kubernetes, Recommended Labels.
"""

NAME = "app.kubernetes.io/name"
"""Label: the component that an object belongs to."""
