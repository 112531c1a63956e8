"""An in-memory cloud with fault injection, held to the real ones' contract suite."""
