"""A real OpenStack on loopback: every API is its project's own, every driver a fake.

Here: the packages, the database, the configuration, the seed, start and stop, and
what `mooring lab` and the tests do in the cloud. Not here: anything a daemon needs.
`guest/` holds the files that run with the lab's own Python, beside the services.
"""
