"""OpenTofu and the OpenStack provider, built for tests of the layouts.

Both are under the MPL-2.0, and are only started here: no image, PEX or package holds
one. Nothing of `mooring lab up` needs them.

Source: go.mod and go.sum in modules/tofu and modules/terraform-provider-openstack.
"""

from lib.lab.artifacts import single_program

TOFU = single_program.SingleProgram(
    "tofu", "github.com/opentofu/opentofu/cmd/tofu", "github.com/opentofu/opentofu"
)

_PROVIDER = "github.com/terraform-provider-openstack/terraform-provider-openstack/v3"
OPENSTACK = single_program.SingleProgram(
    "terraform-provider-openstack", _PROVIDER, _PROVIDER
)
