"""capdvp: the Cluster API infrastructure provider of DVP."""
