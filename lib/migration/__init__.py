"""From the reference for OpenStack to the charts of this project: `mooring migrate`.

reference.py reads what the reference's charts, manifests or Deckhouse left in a
cluster; changeover.py (pure) derives values of the chart, differences and steps.

Rules: nothing is written; contents of Secrets are not read.
"""
