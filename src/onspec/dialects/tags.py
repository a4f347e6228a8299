"""How the tags of one dialect are spelt."""

from __future__ import annotations

from dataclasses import dataclass

RESULTS = (
    "<function_results>\n<result>\n<name>{name}</name>\n<output>{content}</output>\n</result>\n</function_results>"
)
"""How results stand in the prompt of most of these dialects."""


@dataclass(frozen=True)
class Tags:
    """The tags of one dialect, as regular expressions without named groups except those said.

    Attributes:
        wrapper: Opener of the envelope; "" where there is none.
        wrapper_close: Its closer.
        call: Opener of a call, with the groups `name` and optionally `odd` (matched: not spelt as it should be).
        call_close: Its closer, with the optional group `cbad`.
        param: Opener of an argument, with the groups `key`, and optionally `attrs` and `podd`.
        param_close: Its closer, with the optional group `pbad`.
        filler: Markup between the parts that means nothing; "" for none.
        garbled: Opener of a call whose tag name is garbled, with the group `gname`; "" for none.
        call_start, param_start: How such openers begin, for finding damaged ones.
    """

    wrapper: str
    wrapper_close: str
    call: str
    call_close: str
    param: str
    param_close: str
    filler: str = ""
    garbled: str = ""
    call_start: str = ""
    param_start: str = ""
    bare_param: str = r"(?!)"
