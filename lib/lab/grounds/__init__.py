"""What a cloud brings to the lab, as protocols; `lib/lab/openstack` implements them."""
