"""What an OpenStackDeployment must satisfy beyond its schema: one pure table.

Used by lib/osdpl; imports no client and no cluster.

Source: the reference's admission (rockoon/admission/validators), which is a webhook
only; here each reconciliation applies the rules, whichever way a spec came in.
"""
