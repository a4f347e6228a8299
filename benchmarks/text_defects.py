"""Defects of the text: JSON that is broken, cut, wrapped or followed by something else."""

from __future__ import annotations

import json
from random import Random

from benchmarks.defects import (
    ENDINGS,
    Call,
    Spoilt,
    bare_quote,
    marks,
    of_text,
    parses,
    string_start,
    strings_in,
    unescaped,
    write,
)


@of_text
def sound(call: Call, rng: Random) -> Spoilt | None:
    return Spoilt("accept", text=rng.choice(("", " ", "\n")) + call.text + rng.choice(("", "\n", "  ")))


@of_text
def sound_escaped(call: Call, rng: Random) -> Spoilt | None:
    """Some characters of the strings written as escapes, as JSON allows."""
    return Spoilt("accept", text=json.dumps(call.arguments).replace("/", "\\/").replace("g", "\\u0067"))


@of_text
def sound_whole_number(call: Call, rng: Random) -> Spoilt | None:
    """A whole number written with a fraction of nought is an integer."""
    numbers = [key for key, inner in call.arguments.items() if type(inner) is int]
    if not numbers:
        return None
    return Spoilt("accept", text=json.dumps({**call.arguments, numbers[0]: float(call.arguments[numbers[0]])}))


@of_text
def sound_but_cut(call: Call, rng: Random) -> Spoilt | None:
    return Spoilt("refuse", text=call.text, ending=rng.choice(("length", "max_tokens")))


@of_text
def cut_in_text(call: Call, rng: Random) -> Spoilt | None:
    """Cut inside the last string that has some length, whatever the provider says."""
    end = call.text.rfind('"', 0, len(call.text.rstrip("]} \n")) - 1)
    start = string_start(call.text, end)
    if end - start < 4:
        return None
    ending = rng.choice((*ENDINGS, "length"))
    return Spoilt("refuse", text=call.text[: rng.randrange(start + 1, end)], ending=ending)


@of_text
def cut_anywhere(call: Call, rng: Random) -> Spoilt | None:
    return Spoilt("refuse", text=call.text[: rng.randrange(1, len(call.text))], ending="length")


@of_text
def missing_closers(call: Call, rng: Random) -> Spoilt | None:
    body = call.text.rstrip("]} \n")
    if not body.endswith('"') or len(body) == len(call.text):
        return None
    rest = call.text[len(body) :]
    return Spoilt("repair", text=body + rest[: rng.randrange(len(rest))], cautious=True, ending=rng.choice(ENDINGS))


@of_text
def missing_closers_after_length(call: Call, rng: Random) -> Spoilt | None:
    return Spoilt("refuse", text=call.text.rstrip("]} \n"), ending="length")


@of_text
def cut_in_number(call: Call, rng: Random) -> Spoilt | None:
    body = call.text.rstrip("]} \n")
    return Spoilt("refuse", text=body, ending=rng.choice(ENDINGS)) if body[-1:].isdigit() else None


@of_text
def extra_closers(call: Call, rng: Random) -> Spoilt | None:
    return Spoilt("repair", text=call.text + rng.choice(("}", "]", "}}", "\n}", "]}")))


@of_text
def trailing_markup(call: Call, rng: Random) -> Spoilt | None:
    return Spoilt(
        "repair", text=call.text + rng.choice(("</invoke>", "\n</parameter>\n</invoke>", "<|im_end|>", "</tool_call>"))
    )


@of_text
def trailing_prose(call: Call, rng: Random) -> Spoilt | None:
    return Spoilt("repair", text=call.text + rng.choice((" This fixes it.", "\n\nDone!", " // see above")))


@of_text
def leading_prose(call: Call, rng: Random) -> Spoilt | None:
    return Spoilt("repair", text=rng.choice(("json\n", "Here is the call:\n", "Sure. ", "\ufeff")) + call.text)


@of_text
def fenced(call: Call, rng: Random) -> Spoilt | None:
    mark = rng.choice(("```", "````", "~~~")) if rng.random() < 0.2 else "```"
    return Spoilt(
        "repair", text=f"{mark}{rng.choice(('json', '', 'JSON'))}\n{call.text}\n{mark}", cautious=mark == "~~~"
    )


@of_text
def trailing_comma(call: Call, rng: Random) -> Spoilt | None:
    body = call.text.rstrip("} \n")
    return Spoilt("repair", text=f"{body},{call.text[len(body) :]}")


@of_text
def comment(call: Call, rng: Random) -> Spoilt | None:
    return Spoilt("repair", text="{" + rng.choice((' // it\'s "the" call\n', "/* } ] */")) + call.text[1:])


@of_text
def raw_control(call: Call, rng: Random) -> Spoilt | None:
    """Line ends or tabs of the texts written as they are."""
    escape, char = rng.choice((("\\n", "\n"), ("\\t", "\t"), ("\\n", "\n")))
    text = unescaped(call.text, escape, char, rng.random() < 0.5)
    return Spoilt("repair", text=text) if text != call.text else None


@of_text
def double_encoded(call: Call, rng: Random) -> Spoilt | None:
    return Spoilt("repair", text=json.dumps(call.text, ensure_ascii=rng.random() < 0.5))


@of_text
def leading_empty_object(call: Call, rng: Random) -> Spoilt | None:
    return Spoilt("repair", text="{}" + call.text)


@of_text
def said_twice(call: Call, rng: Random) -> Spoilt | None:
    return Spoilt("repair", text=call.text + rng.choice(("", "\n")) + call.text)


@of_text
def two_calls(call: Call, rng: Random) -> Spoilt | None:
    other = call.copy()
    places = list(strings_in(other, 0))
    if not places:
        return None
    place, key = rng.choice(places)
    place[key] += "!"
    return Spoilt("refuse", text=call.text + rng.choice(("", "\n", ",")) + write(other, rng))


@of_text
def repeated_key(call: Call, rng: Random) -> Spoilt | None:
    key = rng.choice(list(call.arguments))
    again = f"{json.dumps(key)}:{json.dumps(call.arguments[key])}"
    text = "{" + again + "," + call.text[1:]
    return Spoilt("repair", text=text, cautious=False, also=(call.arguments,))


@of_text
def repeated_key_other_value(call: Call, rng: Random) -> Spoilt | None:
    keys = [key for key, inner in call.arguments.items() if isinstance(inner, str)]
    if not keys:
        return None
    key = rng.choice(keys)
    spelling = json.dumps(key) if rng.random() < 0.7 else f'"\\u{ord(key[0]):04x}{key[1:]}"'
    return Spoilt("refuse", text=f"{{{spelling}:{json.dumps(call.arguments[key] + ' ')},{call.text[1:]}")


@of_text
def unescaped_quote(call: Call, rng: Random) -> Spoilt | None:
    """Right is the sound call or a refusal, nothing else."""
    text = bare_quote(call.text, rng)
    return None if text is None else Spoilt("refuse", text=text, also=(call.arguments,))


@of_text
def lone_surrogate(call: Call, rng: Random) -> Spoilt | None:
    places = [at for at in range(1, len(call.text)) if call.text.startswith('":', at - 1)]
    values = [call.text.find('"', at + 1) for at in places]
    values = [at for at in values if at > 0 and call.text[at - 1] in ": "]
    if not values:
        return None
    at = rng.choice(values) + 1
    return Spoilt("refuse", text=call.text[:at] + rng.choice(("\\ud83d", "\\udc00", "\\uDBFF ")) + call.text[at:])


@of_text
def python_repr(call: Call, rng: Random) -> Spoilt | None:
    return Spoilt("repair", text=repr(call.arguments), cautious=True)


@of_text
def python_literals(call: Call, rng: Random) -> Spoilt | None:
    pairs = {": true": ": True", ": false": ": False", ":true": ":True", ":false": ":False"}
    value = {key: inner for key, inner in call.arguments.items() if isinstance(inner, bool)}
    if not value:
        return None
    head = ",".join(json.dumps({key: inner})[1:-1] for key, inner in value.items())
    for plain, python in pairs.items():
        head = head.replace(plain, python)
    rest = json.dumps({key: inner for key, inner in call.arguments.items() if key not in value})
    return Spoilt("repair", text="{" + head + "," + rest[1:])


@of_text
def bare_keys(call: Call, rng: Random) -> Spoilt | None:
    body = ",".join(f"{key}:{json.dumps(inner)}" for key, inner in call.arguments.items())
    return Spoilt("repair", text="{" + body + "}")


@of_text
def not_a_number(call: Call, rng: Random) -> Spoilt | None:
    numbers = {key for key, inner in call.arguments.items() if type(inner) in (int, float)}
    if not numbers:
        return None
    members = [
        f"{json.dumps(key)}: {rng.choice(('NaN', 'Infinity', '-Infinity'))}"
        if key in numbers
        else json.dumps({key: inner})[1:-1]
        for key, inner in call.arguments.items()
    ]
    return Spoilt("refuse", text="{" + ", ".join(members) + "}")


@of_text
def bare_backslashes(call: Call, rng: Random) -> Spoilt | None:
    """Backslashes of a pattern written once; none of them starts a legal escape."""
    pattern = call.arguments.get("pattern")
    if pattern is None:
        return None
    text = call.text.replace(json.dumps(pattern), f'"{pattern}"')
    return Spoilt("repair", text=text) if text != call.text else None


@of_text
def mixed_backslashes(call: Call, rng: Random) -> Spoilt | None:
    """A legal escape and an illegal one in one string: either reading is a guess."""
    pattern = call.arguments.get("pattern")
    if pattern is None or "\\" not in pattern:
        return None
    tail = rng.choice(("a\\n", "a\\tb", "a\\b"))
    text = call.text.replace(json.dumps(pattern), f'"{pattern}{tail}"')
    return Spoilt("refuse", text=text) if text != call.text else None


@of_text
def lost_mark(call: Call, rng: Random) -> Spoilt | None:
    """A comma, colon, bracket or quote of the structure is gone: right is the sound call or a refusal, nothing else."""
    at = rng.choice(list(marks(call.text)))
    text = call.text[:at] + call.text[at + 1 :]
    if parses(text):
        return None
    return Spoilt("refuse", text=text, also=(call.arguments,))


@of_text
def leaked_markup_escaped(call: Call, rng: Random) -> Spoilt | None:
    """Leaked closers at the end of a value, their brackets written as escapes, as some encoders do."""
    value = call.copy()
    places = list(strings_in(value, 20))
    if not places:
        return None
    place, key = rng.choice(places)
    place[key] += rng.choice((f"</{key}></invoke>", "</parameter>\n</invoke>", "</tool_call>"))
    text = json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003e")
    return Spoilt("refuse", text=text)


@of_text
def quote_before_closer(call: Call, rng: Random) -> Spoilt | None:
    """A quote left bare before a bracket of the value: what follows looks like text behind a complete call."""
    truth = call.copy()
    places = list(strings_in(truth, 0))
    if not places:
        return None
    place, key = rng.choice(places)
    place[key] += rng.choice(('{"k": "v\x00" },\n', '["v\x00"] }\n', '{ f("v\x00" }}; x\n'))
    text = json.dumps(truth).replace('\\u0000\\"', '"')
    truth = json.loads(json.dumps(truth).replace("\\u0000", ""))
    return None if parses(text) else Spoilt("refuse", text=text, truth=truth, also=(truth,))


@of_text
def key_behind_the_call(call: Call, rng: Random) -> Spoilt | None:
    """The call is closed too early, and another key follows."""
    schema = call.shape.schema
    absent = [key for key in schema["properties"] if key not in call.arguments]
    if not absent:
        return None
    key = rng.choice(absent)
    return Spoilt("refuse", text=call.text + rng.choice((f", {key}: 5}}", f', "{key}": 5}}', f",\n  {key}: true\n}}")))
