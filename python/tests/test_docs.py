# SPDX-License-Identifier: MIT
"""Examples in docstrings and manual pages do what they say."""
import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["dragoman", "dragoman._translator", "dragoman._result", "dragoman._tools"])
def test_docstrings(name, monkeypatch, tree):
    monkeypatch.setenv("DRAGOMAN_MODEL", str(tree / "models"))
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


@pytest.mark.parametrize("page", ["PYTHON.md"])
def test_pages(page, monkeypatch, tree):
    path = tree / "docs/manual" / page
    if not path.exists():
        pytest.skip("the package alone is tested")
    monkeypatch.setenv("DRAGOMAN_MODEL", str(tree / "models"))
    monkeypatch.chdir(tree)
    result = doctest.testfile(str(path), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8")
    assert result.failed == 0 and result.attempted > 5
