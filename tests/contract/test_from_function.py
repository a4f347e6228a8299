"""A typed function becomes a tool."""

from __future__ import annotations

import enum
import functools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Optional, TypedDict

import pydantic
import pytest
from pydantic import BaseModel, Field

from onspec import Tool
from onspec.errors import ToolFormatError


class Mode(enum.Enum):
    FAST = "fast"
    SAFE = "safe"


@dataclass
class Edit:
    old: str
    new: str = ""
    notes: list[str] = field(default_factory=list)


class Range(TypedDict, total=False):
    start: int
    end: int


class Filter(BaseModel):
    glob: str = Field(description="file names", min_length=1)
    deeper: Filter | None = None


def google(
    path: str,
    edits: list[Edit],
    mode: Mode = Mode.SAFE,
    kind: Literal["a", "b"] = "a",
    span: Range | None = None,
    only: Optional[Filter] = None,  # noqa: UP045  # both spellings are read
    count: Annotated[int, Field(ge=1, description="how many")] = 3,
    schema: str = "",
    model_dump: dict[str, list[float]] | None = None,
) -> None:
    """Edit a file.

    Second paragraph: kept.

    Args:
        path (str): Where the
            file is.
        edits: What to do.
        count (int, optional): not this; the annotation wins

    Returns:
        kind: not a parameter's text
    """


def _document(function: Callable[..., Any], **options: Any) -> dict[str, Any]:
    schema = Tool.from_function(function, **options).schema
    assert schema is not None
    assert isinstance(schema.document, dict)
    return schema.document


def test_name_description_and_parameters() -> None:
    tool = Tool.from_function(google)
    assert (tool.name, tool.description) == ("google", "Edit a file.\n\nSecond paragraph: kept.")
    document = _document(google)
    assert document["required"] == ["path", "edits"]
    assert document["additionalProperties"] is False
    properties = document["properties"]
    assert list(properties) == ["path", "edits", "mode", "kind", "span", "only", "count", "schema", "model_dump"]
    assert properties["path"] == {"type": "string", "description": "Where the file is."}
    assert properties["edits"]["description"] == "What to do."
    assert properties["count"] == {"type": "integer", "minimum": 1, "description": "how many", "default": 3}
    assert properties["mode"]["default"] == "safe"
    assert "description" not in properties["kind"]


@pytest.mark.parametrize(
    ("arguments", "valid"),
    [
        ({"path": "a", "edits": []}, True),
        ({"path": "a", "edits": [{"old": "x"}]}, True),
        ({"path": "a", "edits": [{"old": "x", "requireUnique": True}]}, False),
        ({"path": "a", "edits": [{"new": "x"}]}, False),
        ({"path": "a", "edits": [], "mode": "fast"}, True),
        ({"path": "a", "edits": [], "mode": "FAST"}, False),
        ({"path": "a", "edits": [], "kind": "c"}, False),
        ({"path": "a", "edits": [], "span": {"start": 1}}, True),
        ({"path": "a", "edits": [], "span": {"stop": 1}}, False),
        ({"path": "a", "edits": [], "span": None}, True),
        ({"path": "a", "edits": [], "only": {"glob": "x", "deeper": {"glob": "y"}}}, True),
        ({"path": "a", "edits": [], "only": {"glob": "x", "deeper": {"glob": ""}}}, False),
        ({"path": "a", "edits": [], "count": 0}, False),
        ({"path": "a", "edits": [], "model_dump": {"k": [1.5]}}, True),
        ({"path": "a", "edits": [], "other": 1}, False),
        ({"path": "a"}, False),
    ],
)
def test_the_contract_is_the_signature(arguments: dict[str, Any], valid: bool) -> None:
    assert Tool.from_function(google).is_valid(arguments) is valid


def numpy_style(x: int, y: int = 0, *, z: str = "") -> None:
    """Add.

    Parameters
    ----------
    x, y : int
        The summands,
        both.
    z : str, optional
        A label: any.

    Returns
    -------
    z : str
        Not this.
    """


def sphinx_style(x: int, y: int = 0, z: str = "") -> None:
    """Add.

    :param x: The first
        summand.
    :param int y: The second.
    :type z: str
    :param z: A label: any.
    :returns: nothing
    """


@pytest.mark.parametrize(
    ("function", "texts"),
    [
        (numpy_style, {"x": "The summands, both.", "y": "The summands, both.", "z": "A label: any."}),
        (sphinx_style, {"x": "The first summand.", "y": "The second.", "z": "A label: any."}),
    ],
)
def test_docstring_styles(function: Callable[..., Any], texts: dict[str, str]) -> None:
    properties = _document(function)["properties"]
    assert {name: properties[name].get("description") for name in properties} == texts
    assert Tool.from_function(function).description == "Add."


def test_field_as_a_default() -> None:
    def tool(a: int = Field(5, lt=10, description="d"), b: str = Field(description="e")) -> None: ...

    document = _document(tool)
    assert document["required"] == ["b"]
    assert document["properties"]["a"] == {"type": "integer", "exclusiveMaximum": 10, "description": "d", "default": 5}
    assert document["properties"]["b"] == {"type": "string", "description": "e"}


class Store:
    """A store."""

    def get(self, key: str) -> str:
        """Get it."""
        return key

    def __call__(self, key: str) -> str:
        """Call it."""
        return key


async def later(when: int) -> None:
    """Later."""


def test_methods_partials_coroutines_and_callables() -> None:
    def put(key: str, *, value: int) -> None:
        """Put it."""

    bound = functools.partial(put, value=3)
    for function, name, keys in (
        (Store().get, "get", ["key"]),
        (later, "later", ["when"]),
        (Store(), "Store", ["key"]),
        (put, "put", ["key", "value"]),
    ):
        tool = Tool.from_function(function)
        assert tool.name == name
        assert list(_document(function)["properties"]) == keys
    assert list(_document(bound)["properties"]) == ["key"]  # what a partial binds is not the model's to say
    assert Tool.from_function(bound).name == "put"
    assert Tool.from_function(put, name="set", effect="write", aliases={"k": "key"}).name == "set"


def test_two_classes_of_one_name_do_not_mix() -> None:
    def make(kind: type) -> type:
        return pydantic.create_model("Same", v=(kind, ...))

    first, second = make(int), make(str)

    def tool(a: int, b: int) -> None: ...

    tool.__annotations__ = {"a": first, "b": second}
    made = Tool.from_function(tool)
    assert made.is_valid({"a": {"v": 1}, "b": {"v": "x"}})
    assert not made.is_valid({"a": {"v": "x"}, "b": {"v": 1}})


class Opaque: ...


def _refused(annotation: Any) -> Callable[..., None]:
    def tool(x: int) -> None: ...

    tool.__annotations__ = {"x": annotation}
    return tool


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x, "name"),
        (_refused(Opaque), "'x'.*JSON Schema cannot express"),
        (_refused(Callable[[int], int]), "'x'.*JSON Schema cannot express"),
        (_refused("NoSuchName"), "does not exist"),
        (3, "signature"),
        (print, "any number of values"),
        (Store.get, "'self' has no type hint"),
    ],
)
def test_what_is_not_expressible_says_which_parameter(function: Any, message: str) -> None:
    with pytest.raises(ToolFormatError, match=message):
        Tool.from_function(function)


def test_open_ended_parameters_are_refused() -> None:
    def keys(**rest: int) -> None: ...

    def position(x: int, /) -> None: ...

    def bare(x) -> None: ...  # type: ignore[no-untyped-def]  # the missing hint is the case

    for function, message in ((keys, "any keys"), (position, "by name"), (bare, "no type hint")):
        with pytest.raises(ToolFormatError, match=message):
            Tool.from_function(function)


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_onspec_does_not_import_pydantic() -> None:
    assert _python("import onspec, sys; print('pydantic' in sys.modules)") == "False"


def test_without_pydantic_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['pydantic'] = None\n"
        "from onspec import Tool; from onspec.errors import MissingExtra\n"
        "def f(x: int): ...\n"
        "try: Tool.from_function(f)\n"
        "except MissingExtra as error: print(error.extra, '|', error)"
    )
    assert _python(code) == "pydantic | pydantic is not installed; run: pip install 'onspec[pydantic]'"
