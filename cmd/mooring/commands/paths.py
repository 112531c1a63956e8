"""Kinds of arguments that name something on this machine."""

import pathlib

import click

FILE = click.Path(exists=True, dir_okay=False, path_type=pathlib.Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=pathlib.Path)
NEW_FILE = click.Path(dir_okay=False, path_type=pathlib.Path)
NEW_FOLDER = click.Path(file_okay=False, path_type=pathlib.Path)
