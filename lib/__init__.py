"""Everything the components share: the cloud vocabulary, the flows and the runtime."""
