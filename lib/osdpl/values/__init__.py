"""From a spec to the values of each chart: services, sizes, credentials. Pure."""
