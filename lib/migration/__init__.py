"""From the reference to the charts of this project: `mooring migrate`.

reference.py reads what the reference's charts, manifests or Deckhouse left in a
cluster; changeover.py (pure) derives values of the chart for OpenStack, differences
and steps, with http_proxy.py (pure); a package below those for another cloud.

Rules: nothing is written; contents of Secrets are not read.
"""
