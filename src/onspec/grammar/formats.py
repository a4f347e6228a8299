"""Formats of JSON Schema as patterns: those that a regular expression can follow."""

from __future__ import annotations

_DATE = (
    r"[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:[zZ]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{0,20}}"
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_HEX = "[0-9a-fA-F]"
_GROUP = f"{_HEX}{{1,4}}"
_SIX = "|".join(
    [f"(?:{_GROUP}:){{7}}{_GROUP}", f"(?:{_GROUP}:){{1,7}}:", f":(?::{_GROUP}){{1,7}}", "::"]
    + [f"(?:{_GROUP}:){{1,{left}}}(?::{_GROUP}){{1,{7 - left}}}" for left in range(1, 7)]
)
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_CLEAN = r"(?:[A-Za-z0-9._~:/?@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*"
_AUTHORITY = rf"//(?:[A-Za-z0-9._~!$&'()*+,;=:%-]*@)?(?:{_HOST}|\[[0-9A-Fa-f:.]+\])(?::[0-9]{{0,5}})?(?:/{_CLEAN})?"
_PATH = rf"(?:[A-Za-z0-9._~:@!$&'()*+,;=%-]{_CLEAN}|/[A-Za-z0-9._~-]{_CLEAN})"
_REST = rf"(?:\?{_CLEAN})?(?:#{_CLEAN})?"

PATTERNS: dict[str, str] = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}[tT]{_TIME}",
    "duration": r"P(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M)?(?:[0-9]+D)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
    r"(?:T(?:[0-9]+H(?:[0-9]+M)?(?:[0-9]+S)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?"
    r"|T(?:[0-9]+H(?:[0-9]+M)?(?:[0-9]+S)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))",
    "email": rf"{_ATOM}(?:\.{_ATOM})*@{_HOST}",
    "hostname": _HOST,
    "ipv4": rf"{_BYTE}(?:\.{_BYTE}){{3}}",
    "ipv6": _SIX,
    "uuid": f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}",
    "uri": f"[A-Za-z][A-Za-z0-9+.-]*:(?:{_AUTHORITY}|{_PATH}|){_REST}",
    "uri-reference": f"(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?:{_AUTHORITY}|{_PATH}|/|){_REST}",
    "json-pointer": r"(?:/(?:[^~/]|~[01])*)*",
}  # fmt: skip
"""By name (RFC 3339, 5321, 1123, 2673, 4291, 3986, 4122, 6901), each a little narrower than its definition: no leap
days and seconds, no quoted mailboxes, no comments."""


def pattern_of(name: str) -> str | None:
    """A pattern that the whole text matches, or None for a format that is not known here."""
    found = PATTERNS.get(name)
    return None if found is None else f"^(?:{found})$"
