import contextlib
import pathlib
import threading
from collections.abc import Iterator

import pytest

from lib.lab import errors, places
from lib.lab.artifacts import go_modules, programs
from lib.lab.run import progress


def calls(env: dict[str, str]) -> list[str]:
    noted = pathlib.Path(env["HOME"]) / "calls"
    return noted.read_text().split() if noted.exists() else []


def build(where: places.Places, env: dict[str, str]) -> None:
    programs.build(where, ["core"], progress.Silent(), env)


def test_every_program_of_a_group_is_built(
    where: places.Places, pretended_go: dict[str, str]
) -> None:
    """After a build each program is found under its own name."""
    build(where, pretended_go)
    assert {
        program.name: programs.path(where, program.name).read_text().split()[-1]
        for program in go_modules.in_groups(["core"])
    } == {program.name: program.package for program in go_modules.in_groups(["core"])}
    assert programs.missing(where, ["core"]) == ()


def test_one_call_builds_all_programs_of_a_module(
    where: places.Places, pretended_go: dict[str, str]
) -> None:
    """Programs of one module are compiled and linked together."""
    build(where, pretended_go)
    assert calls(pretended_go).count("build") == 2


def test_built_programs_are_not_built_again(
    where: places.Places, pretended_go: dict[str, str]
) -> None:
    """A second build asks Go for nothing at all."""
    build(where, pretended_go)
    before = calls(pretended_go)
    build(where, pretended_go)
    assert calls(pretended_go) == before


def test_only_the_missing_program_is_built(
    where: places.Places, pretended_go: dict[str, str]
) -> None:
    """A build that was interrupted goes on where it stopped."""
    build(where, pretended_go)
    programs.path(where, "kubectl").unlink()
    programs.path(where, "etcd").write_text("kept")
    build(where, pretended_go)
    assert programs.path(where, "etcd").read_text() == "kept"
    assert calls(pretended_go).count("build") == 3


def test_failed_build_leaves_no_program(
    where: places.Places, pretended_go: dict[str, str]
) -> None:
    """A program appears complete or not at all, and the error says what Go said."""
    with pytest.raises(errors.LabError, match=r"cannot build etcd:\nno space left"):
        build(where, {**pretended_go, "GO_SAYS": "no space left"})
    assert "etcd" in programs.missing(where, ["core"])


def test_two_builders_wait_for_one_another(
    where: places.Places, pretended_go: dict[str, str]
) -> None:
    """What one builds the other finds."""
    both = [
        threading.Thread(target=build, args=(where, pretended_go)) for _ in range(2)
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert calls(pretended_go).count("build") == 2


def test_missing_program_says_how_to_get_it(where: places.Places) -> None:
    """One sentence names the program and the remedy."""
    with pytest.raises(errors.LabError, match="^etcd is not built yet; .* builds it"):
        programs.path(where, "etcd")


@pytest.mark.parametrize(
    ("names", "before", "text"),
    [
        (["etcd"], 0, "etcd (1 of 4)"),
        (["kube-apiserver", "kubectl"], 1, "kube-apiserver and kubectl (2-3 of 4)"),
    ],
)
def test_title_says_which_of_how_many(names: list[str], before: int, text: str) -> None:
    """Whoever waits knows what for and how much is left."""
    chosen = [go_modules.by_name(name) for name in names]
    assert programs.title(chosen, before, 4) == text


class Counted(progress.Silent):
    """Remembers what a step said and how far it was."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    @contextlib.contextmanager
    def step(self, what: str) -> Iterator[progress.ProgressStep]:
        del what
        yield self

    def note(self, text: str) -> None:
        self.texts.append(text)

    def advance(self, done: int, total: int) -> None:
        self.texts.append(f"{done} of {total}")


def test_progress_counts_what_is_compiled_and_not_what_is_cached(
    where: places.Places, pretended_go: dict[str, str]
) -> None:
    """Of four packages two are to be compiled; after the last one comes the linker."""
    shown = Counted()
    programs.build(where, ["scheduler"], shown, pretended_go)
    assert shown.texts[-4:] == ["x", "1 of 2", "linking", "2 of 2"]
