"""Each bad flag is one message with flag, value and what would be valid."""

import re

import pytest

from lib.osdpl.daemon import options
from lib.process import command_line
from osdpl_controller import main, version

ROWS = {
    "--helm-timeout=0s": '"0s".* at least 1s',
    "--helm-timeout=-5s": '"-5s".* at least 1s',
    "--helm-timeout=soon": '"soon".* duration such as 5m0s',
    "--helm-slots=0": '"0".* from 1 to 64',
    "--helm-slots=x": '"x".* from 1 to 64',
    "--webhook-port=65536": '"65536".* from 0 to 65535',
    "--secure-port=-1": '"-1".* from 0 to 65535',
    "--settings=/absent": '"/absent".* existing directory',
    "--kubeconfig=/absent": "/absent: no such file",
    "--tls-cert-file=/dev/null/x": "/dev/null/x: not a directory",
    "--chart-source=ftp://user:secret@host": r"http\(s\)://host/path",
    "--namespace=": "name of a namespace",
}
"""What the message matches, after the name of the flag."""


@pytest.mark.parametrize("word", ROWS)
def test_a_bad_flag_is_named(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = command_line.Program(main.NAME, main.HELP, version.VERSION, options.FLAGS)
    code = command_line.execute(program, main.run, [word])
    output = "".join(capsys.readouterr())
    flag = word.partition("=")[0]
    (line,) = (line for line in output.splitlines() if f"{flag}:" in line)
    print(line)
    assert code == 2
    assert re.search(f"{flag}: .*{ROWS[word]}", line)
    assert "secret" not in output
    assert "Traceback" not in output
