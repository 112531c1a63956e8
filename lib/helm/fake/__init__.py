"""An in-memory helm that keeps its releases in the fake API server."""
