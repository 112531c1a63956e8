"""Admission of OpenStackDeployments, and the certificate of its server."""
