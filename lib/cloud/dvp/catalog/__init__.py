"""What a parent cluster offers to a child: storage classes, and its volumes."""
