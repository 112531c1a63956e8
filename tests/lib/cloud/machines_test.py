"""Bootstrap data cannot leave the process by accident."""

import pickle

import pytest

from lib.cloud.machines import BootstrapData

SECRET = "join-token"


def test_bootstrap_data_can_be_neither_shown_nor_saved() -> None:
    data = BootstrapData(SECRET.encode())
    shown = f"{data} {data!r}"
    assert SECRET not in shown
    assert str(len(SECRET)) in shown
    with pytest.raises(TypeError):
        pickle.dumps(data)
    assert data.reveal() == SECRET.encode()
