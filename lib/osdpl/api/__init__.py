"""An OpenStackDeployment: its types, schema, defaults and annotations. Pure."""
