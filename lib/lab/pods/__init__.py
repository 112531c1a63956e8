"""A real node on which helm installs an umbrella chart, and its pods."""
