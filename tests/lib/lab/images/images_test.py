"""Source, labels and name of an image."""

import pathlib
import subprocess

from lib.lab.images import description, images
from lib.process import metrics

DESCRIBED = description.Description(text="t", pex="p", main="m:f", user=1)
AUTHOR = ("-c", "user.name=n", "-c", "user.email=e@example.com")
PREFIX = "org.opencontainers.image."


def git(folder: pathlib.Path, *words: str) -> str:
    return subprocess.check_output(("git", *words), cwd=folder, text=True).strip()


def test_the_commit_is_that_of_the_checkout(tmp_path: pathlib.Path) -> None:
    assert images.commit_of(tmp_path) == images.created_of(tmp_path) == ""
    git(tmp_path, "init", "--quiet")
    assert images.commit_of(tmp_path) == images.created_of(tmp_path) == ""
    file = tmp_path / "file"
    file.write_text("1")
    git(tmp_path, "add", "file")
    date = "--date=2026-02-03T04:05:06+02:00"
    git(tmp_path, *AUTHOR, "commit", "--quiet", "--message=m", date)
    git(tmp_path, *AUTHOR, "tag", "--annotate", "--message=t", "v1")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert images.commit_of(tmp_path) == commit
    seconds = git(tmp_path, "log", "-1", "--format=%ct")
    expected = subprocess.check_output(
        ("date", "-u", f"-d@{seconds}", "+%Y-%m-%dT%H:%M:%SZ"), text=True
    )
    assert images.created_of(tmp_path) == expected.strip()
    file.write_text("2")
    assert images.commit_of(tmp_path) == f"{commit}-dirty"


def test_a_known_commit_is_a_variable_and_a_label() -> None:
    here = pathlib.Path()
    known = images.configuration(
        "n", DESCRIBED, "1.2", images.ImageSource(here, {}, "0123abcd", "2026")
    )
    unknown = images.configuration("n", DESCRIBED, "1.2", images.ImageSource(here, {}))
    assert set(list_of(known["Env"])) - set(list_of(unknown["Env"])) == {
        f"{metrics.COMMIT}=0123abcd"
    }
    same = {
        f"{PREFIX}title": "n",
        f"{PREFIX}description": "t",
        f"{PREFIX}version": "1.2",
        f"{PREFIX}licenses": "Apache-2.0",
        f"{PREFIX}base.name": "bookworm",
    }
    assert unknown["Labels"] == same
    commit = {images.REVISION: "0123abcd", f"{PREFIX}created": "2026"}
    assert known["Labels"] == {**same, **commit}


def list_of(value: object) -> list[object]:
    assert isinstance(value, list)
    return value
