"""Pages of the programs: flags."""

from collections.abc import Mapping

from capdvp import main as capdvp
from capz import main as capz
from cloud_data_discoverer import main as discoverer
from csi_controller import main as csi_controller
from csi_node import main as csi_node
from dvp_ccm import main as dvp_ccm
from lib.ccm import options as manager_options
from lib.osdpl.daemon import options as osdpl_options
from lib.process import command_line, flags
from tests.reference import sheets
from zvirt_ccm import main as zvirt_ccm

FLAGS: Mapping[str, tuple[flags.Flag[object], ...]] = {
    "openstack-ccm": manager_options.FLAGS,
    "dvp-ccm": dvp_ccm.FLAGS,
    "capdvp": capdvp.FLAGS,
    "capz": capz.FLAGS,
    "zvirt-ccm": zvirt_ccm.FLAGS,
    "csi-controller": csi_controller.FLAGS,
    "csi-node": csi_node.FLAGS,
    "cloud-data-discoverer": discoverer.FLAGS,
    "osdpl-controller": osdpl_options.FLAGS,
}


def flag_tables(name: str) -> sheets.Tables:
    """Return the flags of a component, in groups."""
    return {"flags": command_line.reference(FLAGS[name])}
