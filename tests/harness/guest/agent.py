"""Runs in the guest, as root: does what the test asks over a serial port.

One line of JSON per request, and one per answer. `run`: a command of the shell.
`start`: the command line of csi-node, which replaces the one that runs. `call`: a
method of csi-node's socket, with a serialised message.
"""

import base64
import json
import os
import subprocess
import sys
import tty

import grpc

PORT = "/dev/ttyS1"
SOCKET = "/run/csi.sock"
TIMEOUT_S = 240.0


class Agent:
    """Holds the process of csi-node."""

    def __init__(self) -> None:
        self._daemon: subprocess.Popen[bytes] | None = None

    def run(self, command: str) -> dict[str, object]:
        """Run a command of the shell; return its exit code and output."""
        done = subprocess.run(
            command,
            shell=True,  # noqa: S602 - of the guest, for its test
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return {"code": done.returncode, "output": done.stdout}

    def start(self, words: list[str]) -> dict[str, object]:
        """Start csi-node in place of the one that runs; return when it serves."""
        if self._daemon is not None:
            self._daemon.kill()
            self._daemon.wait()
        self._daemon = subprocess.Popen(words, stdout=2, stderr=2)
        with grpc.insecure_channel(f"unix:{SOCKET}") as channel:
            grpc.channel_ready_future(channel).result(timeout=TIMEOUT_S)
        return {"pid": self._daemon.pid}

    def call(self, method: str, body: str) -> dict[str, object]:
        """Call csi-node; return code, details and the serialised answer."""
        with grpc.insecure_channel(f"unix:{SOCKET}") as channel:
            rpc: grpc.UnaryUnaryMultiCallable[bytes, bytes]
            rpc = channel.unary_unary(f"/csi.v1.{method}")
            request = base64.b64decode(body)
            try:
                answer = rpc(request, timeout=TIMEOUT_S, wait_for_ready=True)
            except grpc.RpcError as error:
                return {"code": error.code().name, "details": error.details()}
        return {"code": "OK", "body": base64.b64encode(answer).decode()}


def main() -> None:
    """Answer requests until the port is closed."""
    port = os.open(PORT, os.O_RDWR | os.O_NOCTTY)
    tty.setraw(port)
    agent = Agent()
    with open(port, "r+b", buffering=0) as stream, open(port, "rb", closefd=False) as r:
        stream.write(b'{"ready": true}\n')
        for line in r:
            request = json.loads(line)
            try:
                answer = getattr(agent, request["do"])(*request["arguments"])
            except Exception as error:  # told to the test, which fails
                answer = {"error": f"{type(error).__name__}: {error}"}
            stream.write(json.dumps(answer).encode() + b"\n")
            sys.stderr.flush()


if __name__ == "__main__":
    main()
