"""The core of Cluster API in a lab: built, started with its webhooks, and stopped."""
