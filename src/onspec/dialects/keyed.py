"""GLM's calls: a name, then key tags and value tags in turn."""

from __future__ import annotations

import re
from dataclasses import dataclass

from onspec import possessive
from onspec.dialects.dialect import Context
from onspec.dialects.draft import NOT_CALL, Block, Draft, More, Note, Pair, Reading
from onspec.dialects.tagged import Tagged

_KEYS = possessive.compile(r"(?:\s|\\n)*+((?:<arg_key>[^<]{1,200}</arg_key>(?:\s|\\n)*+){2,})")
_KEY = re.compile(r"<arg_key>([^<]{1,200})</arg_key>")
_VALUE = possessive.compile(r"(?:\s|\\n)*+<arg_value>(.*?)</arg_value>", re.DOTALL)
_ESCAPED = re.compile(r"(?:<tool_call>[^<\\]*|</arg_key>|</arg_value>)\\n(?=<)")


@dataclass(frozen=True)
class Keyed(Tagged):
    """`Tagged`, where an argument is a key tag and a value tag."""

    def read(self, text: str, pos: int, inside: object | None, context: Context, final: bool) -> Reading:
        reading = super().read(text, pos, inside, context, final)
        if isinstance(reading, Block):
            first = reading.drafts[0] if reading.drafts else None
            if first and not first.body and " " in first.name and context.tool(first.name) is None:
                return NOT_CALL
            for draft in reading.drafts:
                place = _ESCAPED.search(text, draft.start, draft.end)
                if place:
                    draft.notes.append(Note("escaped_newlines", place.end() - 2, place.end(), "\\n", "\n"))
        return reading

    def _fixed_param(
        self, text: str, at: int, draft: Draft, context: Context, final: bool
    ) -> tuple[Pair, int] | More | None:
        return None

    def _body(self, text: str, begin: int, draft: Draft, context: Context, final: bool, wrapped: bool) -> int | More:
        """All keys first, then as many values: paired in order."""
        keys = _KEYS.match(text, begin)
        if keys is None:
            return super()._body(text, begin, draft, context, final, wrapped)
        names = _KEY.findall(keys[1])
        pairs: list[Pair] = []
        at = keys.end()
        for name in names:
            value = _VALUE.match(text, at)
            if value is None:
                break
            pairs.append(Pair(name.strip(), value[1]))
            at = value.end()
        closing = self._call_close.match(text, self._gap.match(text, at).end())  # type: ignore[union-attr]
        if closing is None or len(pairs) != len(names):
            return super()._body(text, begin, draft, context, final, wrapped)
        draft.body = pairs
        draft.notes.append(Note("pairs_reordered", begin, at))
        return closing.end()
