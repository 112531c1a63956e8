"""Builds programs that only a few tests start, each from a Go module of its own.

They are no groups of `programs`: batches that do not start one keep their results when
its pin changes. The rules are those of `programs`: a program appears only when it is
complete, and a build waits for other builds into the same cache.

Source: go.mod and go.sum of the module, in modules/.
"""

import dataclasses
import os
import pathlib
import shutil
from collections.abc import Callable, Mapping

from lib.lab import errors, places
from lib.lab.artifacts import (
    commands,
    go_build,
    go_modules,
    go_toolchain,
    program_archive,
)
from lib.lab.run import progress

Keep = Callable[[pathlib.Path, pathlib.Path], None]


def _keep_nothing(module: pathlib.Path, target: pathlib.Path) -> None:
    del module, target


@dataclasses.dataclass(frozen=True, slots=True)
class SingleProgram:
    """A program. name: also that of its module in modules/.

    package: its main package. source: the Go module with that package. keep: copies
    files of the source, a folder, to a folder beside the program.
    """

    name: str
    package: str
    source: str
    keep: Keep = _keep_nothing

    def path(self, where: places.Places) -> pathlib.Path:
        """Return the built program.

        Raises:
            LabError: it is not built yet.
        """
        built = self.folder(where) / self.name
        if not built.exists():
            raise errors.LabError(
                f"{self.name} is not built yet; the long tier of the tests builds it"
                " once"
            )
        return built

    def folder(self, where: places.Places) -> pathlib.Path:
        """Return the folder of the program."""
        return go_modules.folder(where.cache, self.name)

    def build(
        self,
        where: places.Places,
        shown: progress.Progress,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Build the program unless it is there.

        env: the caller's environment, for PATH, GOPROXY, GOFLAGS and the like; the
        process's own when None.

        Raises:
            LabError: no Go toolchain, modules that cannot be fetched, or a failing
                build.
        """
        target = self.folder(where)
        if (target / self.name).exists():
            return
        env = os.environ if env is None else env
        with go_build.alone(where, shown):
            program_archive.bring(where, {target.name}, env, shown)
            if (target / self.name).exists():
                return
            files = go_modules.files(self.name)
            least = go_modules.least_go(files["go.mod"].decode())
            go = go_toolchain.ensure(where, least, env, shown)
            sources = go_build.write_sources(where, target.name, files)
            with shown.step(f"Build {self.name}") as step:
                changed = go_toolchain.environment(where, env)
                self._build(go, sources, target, changed, step)

    def _build(
        self,
        go: pathlib.Path,
        sources: pathlib.Path,
        target: pathlib.Path,
        env: Mapping[str, str],
        step: progress.ProgressStep,
    ) -> None:
        """Fetch and compile; the program is moved to its place last."""
        scratch = target / ".new"
        for folder in (scratch, pathlib.Path(env["GOTMPDIR"])):
            folder.mkdir(parents=True, exist_ok=True)
        built = scratch / self.name
        try:
            module = self._fetch(go, sources, env, step)
            flags = go_build.flags(go_modules.ldflags(self.name))
            commands.run(
                [go, "build", "-v", *flags, "-o", built, self.package],
                failure=f"cannot build {self.name}",
                env=env,
                cwd=sources,
                on_line=step.note,
            )
            self.keep(module, target)
            os.replace(built, target / self.name)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _fetch(
        self,
        go: pathlib.Path,
        sources: pathlib.Path,
        env: Mapping[str, str],
        step: progress.ProgressStep,
    ) -> pathlib.Path:
        """Download the modules that are required; return the folder of the source."""
        folders: list[str] = []

        def note(line: str) -> None:
            if line.startswith("go: downloading "):
                step.note(line.removeprefix("go: "))
            elif line.startswith(f"{self.source} "):
                folders.append(line.partition(" ")[2])

        form = "{{with .Module}}{{.Path}} {{.Dir}}{{end}}"
        commands.run(
            [go, "list", "-deps", "-mod=readonly", "-f", form, self.package],
            failure=f"cannot fetch the Go modules of {self.name}; check that GOPROXY"
            " names a module proxy that can be reached",
            env=env,
            cwd=sources,
            on_line=note,
        )
        return pathlib.Path(folders[-1])
