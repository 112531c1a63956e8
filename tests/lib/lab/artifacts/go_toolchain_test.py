import pathlib

import pytest

from lib.lab import errors, places
from lib.lab.artifacts import go_toolchain
from lib.lab.run import progress


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("go1.26.8\n", (1, 26, 8)),
        ("go1.27", (1, 27, 0)),
        ("go1.26.8 X:nocoverageredesign", (1, 26, 8)),
        ("go1.27-custom", (1, 27, 0)),
        ("go1.27rc1", ()),
        ("devel +abc", ()),
        ("", ()),
    ],
)
def test_versions_are_read(text: str, version: tuple[int, ...]) -> None:
    """What `go env GOVERSION` says becomes numbers; what is no release does not."""
    assert go_toolchain.parse_version(text) == version


def test_go_on_path_comes_first(
    where: places.Places, pretended_go: dict[str, str]
) -> None:
    """The machine's own Go is used when it is new enough."""
    program = go_toolchain.find(where, (99, 1, 0), pretended_go)
    assert program is not None
    assert str(program.parent) == pretended_go["PATH"].split(":")[0]


def test_old_go_is_passed_over(
    where: places.Places, pretended_go: dict[str, str]
) -> None:
    """A Go that cannot build the modules counts as none."""
    assert go_toolchain.find(where, (99, 2, 0), pretended_go) is None


def test_installed_go_is_found_again(
    where: places.Places, pretended_go: dict[str, str]
) -> None:
    """The pinned toolchain is installed once and then used from the cache."""
    installed = where.cache / "go-toolchain" / go_toolchain.pinned_version()
    go = installed / "go" / "bin" / "go"
    go.parent.mkdir(parents=True)
    go.write_text("#!/bin/sh\necho go99.7.0\n")
    go.chmod(0o755)
    assert go_toolchain.find(where, (99, 7, 0), pretended_go) == go


def test_no_index_says_what_helps(
    where: places.Places, pretended_go: dict[str, str], tmp_path: pathlib.Path
) -> None:
    """Without Go and without an index the user learns both remedies."""
    nowhere = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "none")}
    with pytest.raises(errors.LabError, match="install Go by hand and put it on PATH"):
        go_toolchain.ensure(
            where, (99, 2, 0), {**pretended_go, **nowhere}, progress.Silent()
        )
    left = list((where.cache / "go-toolchain").iterdir())
    assert left == []


def test_pin_has_hashes() -> None:
    """The toolchain cannot be exchanged on its way."""
    assert go_toolchain.pinned().count("--hash=sha256:") > 1


def test_everything_of_go_is_kept_in_the_cache(where: places.Places) -> None:
    """Removing the cache leaves nothing of a build behind."""
    env = go_toolchain.environment(where, {"HOME": "/home/ada"})
    folders = ("GOPATH", "GOMODCACHE", "GOCACHE", "GOTMPDIR", "XDG_CONFIG_HOME")
    assert all(env[name].startswith(f"{where.cache}/") for name in folders)
    assert env["GOENV"] == "/home/ada/.config/go/env"


def test_settings_of_the_user_are_respected(where: places.Places) -> None:
    """A module proxy or flags of the user's stay in force."""
    own = {"GOPROXY": "direct", "GOFLAGS": "-p=1", "GOENV": "/etc/go.env"}
    env = go_toolchain.environment(where, own)
    assert (env["GOPROXY"], env["GOENV"]) == ("direct", "/etc/go.env")
    assert env["GOFLAGS"] == "-p=1 -modcacherw"
