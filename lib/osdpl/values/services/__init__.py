"""Values of the charts, one module per service."""
