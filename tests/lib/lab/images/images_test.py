"""What an image records of its source."""

import pathlib
import subprocess

from lib.lab.images import description, images
from lib.process import metrics

DESCRIBED = description.Description(pex="p", main="m:f", user=1)
AUTHOR = ("-c", "user.name=n", "-c", "user.email=e@example.com")


def git(folder: pathlib.Path, *words: str) -> str:
    return subprocess.check_output(("git", *words), cwd=folder, text=True).strip()


def test_the_commit_is_that_of_the_checkout(tmp_path: pathlib.Path) -> None:
    assert images.commit_of(tmp_path) == ""
    git(tmp_path, "init", "--quiet")
    assert images.commit_of(tmp_path) == ""
    file = tmp_path / "file"
    file.write_text("1")
    git(tmp_path, "add", "file")
    git(tmp_path, *AUTHOR, "commit", "--quiet", "--message=m")
    git(tmp_path, *AUTHOR, "tag", "--annotate", "--message=t", "v1")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert images.commit_of(tmp_path) == commit
    file.write_text("2")
    assert images.commit_of(tmp_path) == f"{commit}-dirty"


def test_a_known_commit_is_a_variable_and_a_label() -> None:
    known = images.configuration(DESCRIBED, "0123abcd")
    unknown = images.configuration(DESCRIBED, "")
    assert set(list_of(known["Env"])) - set(list_of(unknown["Env"])) == {
        f"{metrics.COMMIT}=0123abcd"
    }
    assert known["Labels"] == {images.REVISION: "0123abcd"}
    assert unknown["Labels"] == {}


def list_of(value: object) -> list[object]:
    assert isinstance(value, list)
    return value
