"""The documentation: its blocks without a GPU run, the others compile."""

import ast
import pathlib

import documents
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["docs/python.md", "docs/kernels.md", "README.md"])
def test_page(page):
    documents.run(ROOT / page, ["python"], {})
    parse(page)


def test_tutorial(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    documents.run(ROOT / "docs" / "tutorial.md", ["python"], {}, tmp_path)
    parse("docs/tutorial.md")


def parse(page):
    for language, text, line in documents.blocks(ROOT / page):
        if language == "python,gpu":
            ast.parse(text)


def test_there_are_blocks():
    found = [language for language, _, _ in documents.blocks(ROOT / "docs" / "python.md")]
    assert found.count("python") > 5 and found.count("python,gpu") > 3
