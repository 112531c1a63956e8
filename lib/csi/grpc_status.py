"""From the flow's codes to gRPC's: one table."""

from collections.abc import Mapping

import grpc

from lib.volumes.csi_codes import Code

STATUS: Mapping[Code, grpc.StatusCode] = {
    code: grpc.StatusCode[code.value] for code in Code
}
