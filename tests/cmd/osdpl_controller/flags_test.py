"""Wrong flags are rejected with their names."""

import pytest

from lib.osdpl.daemon import options
from lib.process import command_line
from osdpl_controller import main, version


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--namespace="], "--namespace: not set: must be the name of a namespace"),
        (
            ["--kubeconfig=/nowhere"],
            "--kubeconfig: /nowhere: no such file",
        ),
        (
            ["--chart-source=ftp://host"],
            "--chart-source: invalid value: must be http(s)://host/path",
        ),
        (
            ["--chart-source=https://u:pa55word@host"],
            "--chart-source: invalid value: must be http",
        ),
        (["--helm-slots=0"], "--helm-slots"),
        (["--helm-timeout=1d"], "--helm-timeout"),
        (
            ["--tls-cert-file=/nowhere"],
            "--tls-private-key-file: not set: must be the path",
        ),
    ],
)
def test_bad_flags(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program = command_line.Program(main.NAME, main.HELP, version.VERSION, options.FLAGS)
    assert command_line.execute(program, main.run, arguments) == 2
    output = "".join(capsys.readouterr())
    assert words in output
    assert "Traceback" not in output
    assert "pa55word" not in output
