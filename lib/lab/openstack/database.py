"""The lab's MariaDB: a plain process with its own data folder, on loopback."""

import os
import pathlib
import shutil
import socket
from collections.abc import Sequence

from lib.lab import errors
from lib.lab.artifacts import commands, debian
from lib.lab.openstack import config, install, layout
from lib.lab.run import processes

STOP_S = 60.0


def start(home: layout.Layout) -> None:
    """Start the server; make its data folder first when there is none.

    Raises:
        LabError: it did not start.
    """
    if not (home.data / "mariadb").exists():
        _create(home)
    home.etc.mkdir(parents=True, exist_ok=True)
    options = home.etc / "my.cnf"
    options.write_text(config.render_database(_facts(home)))
    tree = home.install.mariadb
    processes.start(
        home.where,
        layout.DATABASE,
        [tree / "usr/sbin/mariadbd", f"--defaults-file={options}", *_user()],
        debian.environment(tree, {}),
    )
    processes.wait_for(
        home.where,
        layout.DATABASE,
        lambda: _greets(home),
    )


def stop(home: layout.Layout) -> None:
    """End the server, which writes what it has in memory first."""
    processes.stop(home.where, [layout.DATABASE], patience_s=STOP_S)


def clear(home: layout.Layout, names: Sequence[str]) -> None:
    """Have these databases, with nothing in them."""
    run(
        home,
        "".join(
            f"DROP DATABASE IF EXISTS {name};"
            f" CREATE DATABASE {name} CHARACTER SET utf8mb3;"
            for name in names
        ),
    )


def run(home: layout.Layout, sql: str) -> None:
    """Carry SQL statements out as root.

    Raises:
        LabError: the server refused, or does not run.
    """
    tree = home.install.mariadb
    port = home.port(layout.DATABASE)
    commands.run(
        [
            *(tree / "usr/bin/mariadb", "--no-defaults", "--user=root"),
            *("--protocol=tcp", "--host=127.0.0.1", f"--port={port}"),
            f"--execute={sql}",
        ],
        failure="the lab's database refused a command",
        env=debian.environment(tree, install.clean(os.environ)),
    )


def _create(home: layout.Layout) -> None:
    """Make an empty data folder; it appears under its name when it is complete."""
    tree, part = home.install.mariadb, home.data / "mariadb.new"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    commands.run(
        [
            *("bash", tree / "usr/bin/mariadb-install-db", "--no-defaults"),
            *(f"--basedir={tree / 'usr'}", f"--datadir={part}"),
            *(f"--lc-messages-dir={_messages(tree)}", "--skip-test-db"),
            *("--auth-root-authentication-method=normal", *_user()),
        ],
        failure="the lab's database could not be made",
        env=debian.environment(tree, install.clean(os.environ)),
    )
    part.replace(home.data / "mariadb")


def _facts(home: layout.Layout) -> config.DatabaseFacts:
    tree = home.install.mariadb
    return config.DatabaseFacts(
        tree=tree,
        messages=_messages(tree),
        plugins=next(tree.glob("usr/lib/*/plugin"), tree / "usr/lib/mysql/plugin"),
        data=home.data,
        port=home.port(layout.DATABASE),
    )


def _messages(tree: pathlib.Path) -> pathlib.Path:
    """Find the folder with the server's own error texts.

    Raises:
        LabError: the packages hold none.
    """
    for file in tree.glob("usr/share/*/english/errmsg.sys"):
        return file.parent.parent
    raise errors.LabError(
        f"MariaDB's packages in {tree} are incomplete; remove the folder and repeat"
    )


def _user() -> list[str]:
    # It refuses to be root by chance; for other users there is nothing to say.
    return ["--user=root"] if os.geteuid() == 0 else []


def _greets(home: layout.Layout) -> bool:
    """Report whether the server speaks first, as it does once it takes connections."""
    address = ("127.0.0.1", home.port(layout.DATABASE))
    try:
        with socket.create_connection(address, timeout=2) as connection:
            return bool(connection.recv(1))
    except OSError:
        return False
