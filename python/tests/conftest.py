# SPDX-License-Identifier: MIT
"""Run by `make test` (scripts/python_tests): PYTHONPATH names the package, DRAGOMAN_TREE the checkout."""
import os
from pathlib import Path

import pytest

import dragoman

TREE = Path(os.environ.get("DRAGOMAN_TREE", Path(__file__).resolve().parents[2]))


def sample(count):
    with open(TREE / "tests/data/translate/newstest2014-1000.en", encoding="utf-8") as lines:
        return [next(lines).rstrip("\n") for _ in range(count)]


@pytest.fixture(scope="session")
def tree():
    return TREE


@pytest.fixture(scope="session")
def en_de():
    """The shipped model; tests do not close it."""
    with dragoman.Translator(TREE / "models/en-de.gguf", threads=2) as t:
        yield t


@pytest.fixture(scope="session")
def lines():
    return sample(24)
