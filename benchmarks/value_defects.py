"""Defects of the value: wrong keys, wrong shapes, wrong types. The text is sound JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from benchmarks import payload
from benchmarks.defects import Call, Spoilt, bare_quote, of_value, strings_in, write


@of_value
def extra_key_inert(call: Call, rng: Random) -> Spoilt | None:
    value = call.copy()
    place = rng.choice(_objects(value))
    place[rng.choice(INVENTED)] = rng.choice(("", None, [], {}))
    return Spoilt("repair", value)


@of_value
def extra_key_option(call: Call, rng: Random) -> Spoilt | None:
    value = call.copy()
    place = rng.choice(_objects(value))
    for key in rng.sample(INVENTED, rng.randrange(1, 3)):
        place[key] = rng.choice((True, False, 0, 1.5, "exact", ["x"]))
    return Spoilt("repair", value, cautious=True)


INVENTED = ("requireUnique", "matchCase", "cost", "confidence", "children", "explanation", "isRegex")


def _objects(value: Any) -> list[dict[str, Any]]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return ([value] if isinstance(value, dict) else []) + [found for one in inner for found in _objects(one)]


@of_value
def numbered_twin_whole(call: Call, rng: Random) -> Spoilt | None:
    if call.shape.name != "edit":
        return None
    value, truth = call.copy(), call.copy()
    second = {"oldText": payload.text(rng, 30), "newText": payload.text(rng, 60)}
    value["edits"][-1].update({f"{key}2": text for key, text in second.items()})
    truth["edits"].append(second)
    return Spoilt("repair", value, truth=truth, cautious=True)


@of_value
def numbered_twin_half(call: Call, rng: Random) -> Spoilt | None:
    if call.shape.name != "edit":
        return None
    value = call.copy()
    value["edits"][-1][rng.choice(("newText2", "oldText2", "newText_2"))] = "second: " + payload.text(rng, 40)
    return Spoilt("refuse", value)


@of_value
def numbered_twin_empty(call: Call, rng: Random) -> Spoilt | None:
    if call.shape.name != "edit":
        return None
    value = call.copy()
    value["edits"][-1].update({"oldText2": "", "newText2": ""})
    return Spoilt("repair", value)


@of_value
def other_file_in_item(call: Call, rng: Random) -> Spoilt | None:
    if call.shape.name != "edit":
        return None
    value = call.copy()
    value["edits"][0]["path"] = payload.path(rng) + ".other"
    return Spoilt("refuse", value)


@of_value
def near_miss_key(call: Call, rng: Random) -> Spoilt | None:
    optional = [key for key in call.shape.schema["properties"] if key not in call.shape.schema["required"]]
    if not optional:
        return None
    value = call.copy()
    key = rng.choice(optional)
    old = value.pop(key, 7 if call.shape.schema["properties"][key]["type"] != "boolean" else True)
    value[rng.choice((f"line_{key}", f"{key}_value", f"max_{key}"))] = old
    return Spoilt("refuse", value)


@of_value
def stringified(call: Call, rng: Random) -> Spoilt | None:
    value = call.copy()
    places = [key for key, inner in value.items() if isinstance(inner, list)]
    if not places:
        return None
    key = rng.choice(places)
    value[key] = write(value[key], rng)
    return Spoilt("repair", value)


@of_value
def stringified_items(call: Call, rng: Random) -> Spoilt | None:
    value = call.copy()
    places = [key for key, inner in value.items() if isinstance(inner, list) and isinstance(inner[0], dict)]
    if not places:
        return None
    value[places[0]] = [write(one, rng) for one in value[places[0]]]
    return Spoilt("repair", value)


@of_value
def stringified_broken(call: Call, rng: Random) -> Spoilt | None:
    value = call.copy()
    places = [key for key, inner in value.items() if isinstance(inner, list) and isinstance(inner[0], dict)]
    if not places:
        return None
    bare = bare_quote(json.dumps(value[places[0]], ensure_ascii=False), rng)
    if bare is None:
        return None
    value[places[0]] = bare
    return Spoilt("refuse", value, also=(call.arguments,))


@of_value
def object_for_array(call: Call, rng: Random) -> Spoilt | None:
    value = call.copy()
    for key, inner in value.items():
        if isinstance(inner, list) and len(inner) == 1:
            value[key] = inner[0]
            return Spoilt("repair", value)
    return None


@of_value
def lifted_item(call: Call, rng: Random) -> Spoilt | None:
    if call.shape.name != "edit" or len(call.arguments["edits"]) != 1:
        return None
    return Spoilt("repair", {"path": call.arguments["path"], **call.copy()["edits"][0]}, cautious=True)


ALIASES = {
    "path": ("file_path", "filePath", "file"),
    "file_path": ("path", "filePath"),
    "command": ("cmd",),
    "oldText": ("old_string", "old_str", "oldString"),
    "newText": ("new_string", "new_str", "newString"),
    "old_string": ("oldText", "old_str"),
    "new_string": ("newText", "new_str"),
}


@of_value
def alias_keys(call: Call, rng: Random) -> Spoilt | None:
    value, changed = _renamed(call.arguments, lambda key: rng.choice(ALIASES[key]) if key in ALIASES else key)
    return Spoilt("repair", value) if changed else None


@of_value
def alias_conflict(call: Call, rng: Random) -> Spoilt | None:
    value = call.copy()
    keys = [key for key in value if key in ALIASES]
    if not keys:
        return None
    key = rng.choice(keys)
    value[ALIASES[key][0]] = value[key] + "x"
    return Spoilt("refuse", value)


@of_value
def key_spelling(call: Call, rng: Random) -> Spoilt | None:
    spell = rng.choice((_snake, _camel, str.upper, str.capitalize))
    value, changed = _renamed(call.arguments, spell)
    return Spoilt("repair", value) if changed else None


@of_value
def key_blank(call: Call, rng: Random) -> Spoilt | None:
    value = call.copy()
    place = rng.choice(_objects(value))
    key = rng.choice(list(place))
    return Spoilt("repair", _with_key(value, place, key, rng.choice((f"{key} ", f" {key}", f"{key}\n"))))


def _with_key(value: Any, place: dict[str, Any], key: str, spelling: str) -> Any:
    members = [(spelling if one == key else one, inner) for one, inner in place.items()]
    place.clear()
    place.update(members)
    return value


def _renamed(value: Any, spell: Callable[[str], str]) -> tuple[Any, bool]:
    if isinstance(value, list):
        inner = [_renamed(one, spell) for one in value]
        return [one for one, _ in inner], any(changed for _, changed in inner)
    if not isinstance(value, dict):
        return value, False
    out: dict[str, Any] = {}
    changed = False
    for key, one in value.items():
        spelling = spell(key)
        out[spelling], deeper = _renamed(one, spell)
        changed |= deeper or spelling != key
    return out, changed


def _snake(key: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in key)


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(part.capitalize() for part in rest)


@of_value
def envelope(call: Call, rng: Random) -> Spoilt | None:
    key = rng.choice(("arguments", "input", "parameters", "args", "params"))
    inner: Any = call.copy()
    if rng.random() < 0.3:
        inner = write(inner, rng)
    if rng.random() < 0.2:
        return Spoilt("repair", {"name": call.shape.name, "arguments": inner})
    return Spoilt("repair", {key: inner})


@of_value
def envelope_of_another_tool(call: Call, rng: Random) -> Spoilt | None:
    return Spoilt("refuse", {"name": "delete_" + payload.word(rng), "arguments": call.copy()})


@of_value
def arguments_in_array(call: Call, rng: Random) -> Spoilt | None:
    return Spoilt("repair", [call.copy()])


@of_value
def stringified_scalars(call: Call, rng: Random) -> Spoilt | None:
    value = call.copy()
    changed = False
    for place in _objects(value):
        for key, inner in place.items():
            if isinstance(inner, bool | int | float):
                place[key] = json.dumps(inner)
                changed = True
    return Spoilt("repair", value) if changed else None


@of_value
def unreadable_scalar(call: Call, rng: Random) -> Spoilt | None:
    value = call.copy()
    for place in _objects(value):
        for key, inner in place.items():
            if isinstance(inner, int) and not isinstance(inner, bool):
                place[key] = rng.choice((f"{inner}.5", f"{inner},000", f"0x{inner}", f"{inner} lines", inner + 0.5))
                return Spoilt("refuse", value)
    return None


@of_value
def number_for_text(call: Call, rng: Random) -> Spoilt | None:
    value, truth = call.copy(), call.copy()
    key = rng.choice([key for key, inner in value.items() if isinstance(inner, str)] or [""])
    if not key:
        return None
    value[key] = rng.randrange(10**6)
    truth[key] = str(value[key])
    return Spoilt("repair", value, truth=truth, cautious=True)


@of_value
def object_for_text(call: Call, rng: Random) -> Spoilt | None:
    value = call.copy()
    key = rng.choice([key for key, inner in value.items() if isinstance(inner, str)] or [""])
    if not key:
        return None
    value[key] = {"name": payload.word(rng), "private": True}
    return Spoilt("refuse", value)


@of_value
def several_for_text(call: Call, rng: Random) -> Spoilt | None:
    value = call.copy()
    key = rng.choice([key for key, inner in value.items() if isinstance(inner, str)] or [""])
    if not key:
        return None
    value[key] = [value[key], payload.path(rng)]
    return Spoilt("refuse", value)


@of_value
def enum_letter_case(call: Call, rng: Random) -> Spoilt | None:
    if call.shape.name != "plan":
        return None
    value = call.copy()
    for task in value["tasks"]:
        task["state"] = rng.choice((str.upper, str.title))(task["state"])
    return Spoilt("repair", value)


@of_value
def enum_unknown(call: Call, rng: Random) -> Spoilt | None:
    if call.shape.name != "plan":
        return None
    value = call.copy()
    rng.choice(value["tasks"])["state"] = rng.choice(("blocked", "done", "failed"))
    return Spoilt("refuse", value)


@of_value
def null_for_optional(call: Call, rng: Random) -> Spoilt | None:
    schema = call.shape.schema
    absent = [key for key in schema["properties"] if key not in schema["required"] and key not in call.arguments]
    if not absent:
        return None
    return Spoilt("repair", {**call.copy(), **dict.fromkeys(absent)})


@of_value
def null_for_required(call: Call, rng: Random) -> Spoilt | None:
    value = call.copy()
    value[rng.choice(call.shape.schema["required"])] = None
    return Spoilt("refuse", value)


@of_value
def missing_required(call: Call, rng: Random) -> Spoilt | None:
    value = call.copy()
    places = [(value, call.shape.schema["required"])]
    if call.shape.name == "edit":
        places.append((rng.choice(value["edits"]), ["oldText", "newText"]))
    place, required = rng.choice(places)
    del place[rng.choice(required)]
    return Spoilt("refuse", value)


@of_value
def leaked_markup(call: Call, rng: Random) -> Spoilt | None:
    value = call.copy()
    places = list(strings_in(value, 20))
    if not places:
        return None
    place, key = rng.choice(places)
    place[key] += rng.choice(
        (f"</{key}></invoke>", "</parameter>\n</invoke>", "\n</invoke>\n</function_calls>", "</tool_call>")
    )
    return Spoilt("refuse", value)


@of_value
def swallowed_sibling(call: Call, rng: Random) -> Spoilt | None:
    required = call.shape.schema["required"]
    texts = [key for key in required if call.shape.schema["properties"][key] == {"type": "string"}]
    if len(texts) < 2:
        return None
    value = call.copy()
    first, second = texts[-2:]
    value[first] = f'{value[first]}</{first}>\n<parameter name="{second}">{value.pop(second)}'
    return Spoilt("refuse", value)


RESTRAINTS = (
    ("append", True),
    ("overwrite", False),
    ("dry_run", True),
    ("preview", True),
    ("cwd", "/srv/other"),
    ("host", "staging"),
    ("exclude", ["keep"]),
    ("requires_approval", True),
)
"""Keys that narrow or redirect what a call does: without them it does something else."""


@of_value
def restraint_dropped(call: Call, rng: Random) -> Spoilt | None:
    if call.shape.name not in ("write", "run", "edit", "replace"):
        return None
    key, value = rng.choice(RESTRAINTS)
    return Spoilt("refuse", {**call.copy(), key: value})


@of_value
def work_in_unknown_key(call: Call, rng: Random) -> Spoilt | None:
    """More edits under a key of no tool: dropping it loses work."""
    value = call.copy()
    work = {"oldText": payload.text(rng, 20), "newText": payload.text(rng, 40)}
    if call.shape.name == "edit":
        value["edits"][-1][rng.choice(("children", "next", "and"))] = rng.choice((work, [work]))
    elif call.shape.name == "replace":
        value[rng.choice(("edits", "more", "also"))] = [work]
    else:
        return None
    return Spoilt("refuse", value)
