"""Configuration: cloud.conf, clouds.yaml and the environment become typed settings."""
