"""What the lab runs, before it runs: Go programs, PEX files, Debian packages, images.

Here: the pinned modules and the toolchain, downloads, builds, and the caches in which
the results are kept. Not here: starting any of it.
"""
