"""Octavia load balancers with their floating IPs and security groups.

`cloud.OctaviaLoadBalancers` is the one door. Reading (`observe`) and writing (`cloud`)
stand at the edge; everything between is pure: `parse` makes a wanted tree of facts,
`plan` compares it with an observed tree and gives the next requests.
"""
