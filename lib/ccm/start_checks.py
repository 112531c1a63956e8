"""What every cloud controller manager checks before it starts."""

import dataclasses
import os
from collections.abc import Callable, Mapping

from lib.ccm import flag_table, options
from lib.daemon import common_flags
from lib.process import config, flags, serving


def problems(
    values: flags.Values, provider: str, *own: Callable[[], object]
) -> tuple[config.FieldProblem | str, ...]:
    """Return the problems of flags, kubeconfig, certificate and address.

    own: further checks, of the cloud; each may raise a ConfigError.
    """
    # Heavy, and not needed for --help.
    from lib.daemon import server_certificate, starting

    reach = starting.Reach(values[common_flags.KUBECONFIG], values[common_flags.MASTER])
    pair = values[common_flags.TLS_CERT], values[common_flags.TLS_KEY]
    address = values[common_flags.BIND_ADDRESS], values[flag_table.SECURE_PORT]
    return config.collect(
        lambda: config.require(options.judge(values, provider)),
        *own,
        lambda: starting.load(reach, os.environ),
        lambda: server_certificate.check(pair, values[flag_table.CLIENT_CA]),
        lambda: serving.check_address(*address),
    )


def shared_flags(
    no_effect: Mapping[flags.Flag[object], str],
) -> tuple[flags.Flag[object], ...]:
    """Return the flags of all managers. no_effect: reasons, where one does nothing."""
    reasons = {flag.name: reason for flag, reason in no_effect.items()}
    return tuple(
        (
            dataclasses.replace(
                flag, no_effect=reasons[flag.name], help="Ignored.", is_required=False
            )
            if flag.name in reasons
            else flag
        )
        for flag in options.FLAGS
    )
