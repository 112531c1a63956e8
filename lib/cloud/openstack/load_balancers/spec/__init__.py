"""What a Service asks for: annotations, names, subnets, and the spec parsed of them."""
