"""Builds the lab's programs from pinned Go modules, once per machine.

Rules: everything lands below the lab's cache folder; a program appears under its name
only when it is complete; two builders wait for one another; a build that was
interrupted continues where it stopped.
"""

import dataclasses
import itertools
import os
import pathlib
import shutil
from collections.abc import Collection, Mapping, Sequence

from lib.lab import errors, places
from lib.lab.artifacts import (
    commands,
    go_build,
    go_modules,
    go_toolchain,
    outlook,
    program_archive,
    published_programs,
)
from lib.lab.run import progress

_CACHED = "available in build cache"
"""Source: buildid.go of the go command: such a package is not compiled again."""


def path(where: places.Places, program: str) -> pathlib.Path:
    """Return the built program.

    Raises:
        LabError: it is not built yet.
    """
    built = go_modules.folder(where.cache, go_modules.by_name(program).module) / program
    if not built.exists():
        raise errors.LabError(
            f"{program} is not built yet; `mooring lab up` builds it once"
        )
    return built


def missing(where: places.Places, groups: Collection[str]) -> tuple[str, ...]:
    """Return the programs of some groups that `build` would have to build."""
    return tuple(program.name for program in _missing(where, groups))


def _missing(
    where: places.Places, groups: Collection[str], names: Collection[str] = ()
) -> tuple[go_modules.GoProgram, ...]:
    return tuple(
        program
        for program in go_modules.in_groups(groups)
        if not names or program.name in names
        if not (go_modules.folder(where.cache, program.module) / program.name).exists()
    )


def build(
    where: places.Places,
    groups: Collection[str],
    shown: progress.Progress,
    env: Mapping[str, str] | None = None,
    *,
    names: Collection[str] = (),
    ahead: outlook.Outlook | None = None,
) -> None:
    """Build what is not there yet of some groups of programs.

    What an archive or a download site has is not compiled.

    env: the caller's environment, for PATH, GOPROXY, GOFLAGS and the like; the
    process's own when None. names: only these of the groups; empty: all. ahead: counts
    the packages that are compiled.

    Raises:
        LabError: an unknown group, an archive or a download that is not what it should
            be, no Go toolchain, modules that cannot be fetched, or a failing build.
    """
    env = os.environ if env is None else env
    if not _missing(where, groups, names):
        return
    with go_build.alone(where, shown):
        _bring(where, _missing(where, groups, names), env, shown)
        missing = _missing(where, groups, names)
        if not missing:
            return
        contents = {
            program.module: go_modules.files(program.module) for program in missing
        }
        least = max(
            go_modules.least_go(files["go.mod"].decode()) for files in contents.values()
        )
        go = go_toolchain.ensure(where, least, env, shown)
        ahead = ahead or outlook.Outlook()
        ahead.expect(contents)
        workshop = _Workshop(where, go, go_toolchain.environment(where, env), ahead)
        done = 0
        for module, batch in itertools.groupby(missing, lambda program: program.module):
            programs = tuple(batch)
            what = f"Build {title(programs, done, len(missing))}"
            with shown.step(what) as step:
                workshop.build(module, contents[module], programs, step)
            done += len(programs)


def _bring(
    where: places.Places,
    needed: Sequence[go_modules.GoProgram],
    env: Mapping[str, str],
    shown: progress.Progress,
) -> None:
    """Take what others have built: from the archive, else from download sites."""
    if not needed:
        return
    if env.get(program_archive.SETTING):
        folders = {
            go_modules.folder(where.cache, program.module).name for program in needed
        }
        program_archive.bring(where, folders, env, shown)
    else:
        published_programs.bring(where, needed, env, shown)


def _flags(module: str) -> tuple[str, ...]:
    """Return what decides how packages are compiled: for `go list` and `go build`."""
    return go_build.flags(go_modules.ldflags(module))


def title(programs: Sequence[go_modules.GoProgram], before: int, total: int) -> str:
    """Return which programs are under way: "kubelet (3 of 4)", "a and b (1-2 of 4)"."""
    names = [program.name for program in programs]
    text = ", ".join(names[:-1]) + " and " + names[-1] if names[1:] else names[0]
    last = before + len(names)
    span = f"{before + 1}-{last}" if names[1:] else f"{last}"
    return f"{text} ({span} of {total})"


@dataclasses.dataclass(frozen=True, slots=True)
class _Workshop:
    """What building one module after another needs. env: that of `go`."""

    where: places.Places
    go: pathlib.Path
    env: Mapping[str, str]
    ahead: outlook.Outlook

    def build(
        self,
        module: str,
        files: Mapping[str, bytes],
        programs: Sequence[go_modules.GoProgram],
        step: progress.ProgressStep,
    ) -> None:
        """Build some programs of one module, sharing what they have in common."""
        target = go_modules.folder(self.where.cache, module)
        sources = go_build.write_sources(self.where, target.name, files)
        scratch = (target / ".new", pathlib.Path(self.env["GOTMPDIR"]))
        for needed in scratch:
            needed.mkdir(parents=True, exist_ok=True)
        try:
            total = self._fetch(module, sources, programs, step)
            self._compile(module, sources, scratch[0], programs, (total, step))
            for program in programs:
                built = program.built_as or program.package.rpartition("/")[2]
                os.replace(scratch[0] / built, target / program.name)
        finally:
            for used in scratch:
                shutil.rmtree(used, ignore_errors=True)

    def _fetch(
        self,
        module: str,
        sources: pathlib.Path,
        programs: Sequence[go_modules.GoProgram],
        step: progress.ProgressStep,
    ) -> int:
        """Download what the programs need; return how many packages are to compile."""
        packages = 0

        def count(line: str) -> None:
            nonlocal packages
            if line.startswith("go: downloading "):
                step.note(line.removeprefix("go: "))
            elif line.startswith("true "):
                packages += not line.endswith(_CACHED)

        step.note("reading the modules")
        commands.run(
            [
                self.go,
                *("list", "-deps", *_flags(module)),
                # By the flags of the build Go knows what its cache has already.
                *("-f", "{{.Stale}} {{.StaleReason}}"),
                *(program.package for program in programs),
            ],
            failure=f"cannot fetch the Go modules of {module}; check that GOPROXY"
            " names a module proxy that can be reached",
            env=self.env,
            cwd=sources,
            on_line=count,
        )
        return packages

    def _compile(
        self,
        module: str,
        sources: pathlib.Path,
        scratch: pathlib.Path,
        programs: Sequence[go_modules.GoProgram],
        seen_by: tuple[int, progress.ProgressStep],
    ) -> None:
        """Compile and link; packages that are in Go's cache already are skipped."""
        total, step = seen_by
        compiled = itertools.count(1)

        def show(line: str) -> None:
            done = next(compiled)
            step.note(line if done < total else "linking")
            step.advance(min(done, total), total)
            self.ahead.advance(module, min(done, total), total)

        commands.run(
            [
                self.go,
                *("build", "-v", *_flags(module)),
                *("-o", f"{scratch}/", *(program.package for program in programs)),
            ],
            failure=f"cannot build {module}",
            env=self.env,
            cwd=sources,
            on_line=show,
        )
