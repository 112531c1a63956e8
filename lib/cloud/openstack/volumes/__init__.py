"""Cinder's volumes and Nova's attachments of them: `lib.cloud.volumes.Volumes`.

Native words (server, volume type, availability zone) stay inside; `lib.cloud.openstack.
cloud` opens this room. What is pure lives in translate, parameters and refusals; reads
and writes make the calls.
"""
