"""The families that write every argument in a tag of its own, spelt out."""

from __future__ import annotations

from dataclasses import replace

from onspec.dialects.keyed import Keyed
from onspec.dialects.tagged import Tagged
from onspec.dialects.tags import RESULTS, Tags
from onspec.dialects.write import PROMPT


def _attributed(
    prefix: str,
    wrapper: str,
    *,
    native: str,
    literal_wrapper: str,
    literal_prefix: str = "",
    missing: str = "wrapper_missing",
    newline: str = "\n",
    typed: bool = False,
    exact: tuple[str, ...] = (),
    call: str = "invoke",
    param: str = "parameter",
    filler: str = "",
    writes: tuple[str, str] | None = None,
    result: str = "",
    extra_literals: tuple[str, ...] = (),
) -> Tagged:
    """The family `<invoke name="N"><parameter name="K">V</parameter></invoke>` under some prefix."""
    name = r"""\s+name\s*=\s*"(?P<name>[^"<>\n]{1,200})"[^<>\n]{0,80}>"""
    p = literal_prefix
    return Tagged(
        Tags(
            wrapper=wrapper,
            wrapper_close=wrapper.replace("<", "</", 1),
            call=rf"<{prefix}{call}{name}",
            call_close=rf"</{prefix}{call}(?P<cbad>[^<>\n\w][^<>\n]{{0,7}}|\d[^<>\n]{{0,7}})?>",
            param=rf"""<{prefix}{param}\s+name\s*=\s*"(?P<key>[^"<>\n]{{1,200}})"(?P<attrs>[^<>\n]{{0,80}})>""",
            param_close=rf"</{prefix}{param}(?:>|(?P<pbad>[\d/ .:;-][^<>\n]{{0,7}})>"
            rf"|(?P<pcut>)(?=\s*<{prefix}{param}\s))",
            bare_param=rf"<{prefix}{param}>",
            garbled=r"""<(?!/)[\w:｜|.-]{1,40}\s+name\s*=\s*"(?P<gname>NAMES)"\s?>(?=\s{0,20}<[^<>\n]{0,60}[\s"=]name\s*=|\s{0,20}</)""",
            call_start=rf"<{prefix}{call}(?=[\s=])",
            param_start=rf"<{prefix}{param}(?=[\s=>])",
            filler=filler,
        ),
        literals=(
            literal_wrapper,
            literal_wrapper.replace("<", "</", 1),
            f'<{p}{call} name="',
            f"</{p}{call}>",
            f"</{p}{param}>",
            *extra_literals,
        ),
        firsts="<",
        write=(
            (writes[0] if writes else literal_wrapper + newline),
            (writes[1] if writes else literal_wrapper.replace("<", "</", 1)),
            f'<{p}{call} name="{{name}}">{newline}',
            f"</{p}{call}>{newline}",
            f'<{p}{param} name="{{key}}"'
            + (' string="{string}"' if typed else "")
            + f">{{value}}</{p}{param}>{newline}",
        ),
        missing_wrapper=missing,
        exact_wrapper=exact,
        exact_prefix=native,
        typed=typed,
        result=result or RESULTS,
        prompt=PROMPT + "{example}",
    )


ANTHROPIC = _attributed(
    "(?:antml:)?",
    r"<(?:antml:)?function_calls>",
    native=r"<(?:antml:)?invoke",
    literal_wrapper="<function_calls>",
    extra_literals=(
        "<" + "antml:function_calls>",
        "</" + "antml:function_calls>",
        "</" + "antml:invoke>",
        "</" + "antml:parameter>",
    ),
)
DSML = _attributed(
    r"(?:[｜|]DSML[｜|]\s?)?",
    r"<(?:[｜|]DSML[｜|]\s?(?!invoke|parameter)\w{1,40}|function_calls|tool_calls)>",
    native="<｜DSML｜",
    literal_wrapper="<｜DSML｜tool_calls>",
    literal_prefix="｜DSML｜",
    typed=True,
    exact=("<｜DSML｜tool_calls>", "<｜DSML｜function_calls>"),
    result="<function_results>\n<result>{content}</result>\n</function_results>",
    extra_literals=("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
)
MINIMAX = _attributed(
    "",
    r"<minimax:tool_call>",
    native="<invoke",
    literal_wrapper="<minimax:tool_call>",
    result="<response>{content}</response>",
)
GLIMMER = _attributed(
    "(?:atem:)?",
    r"<(?:atem:)?function_calls>",
    native="<atem:invoke",
    literal_wrapper="<atem:function_calls>",
    literal_prefix="atem:",
)
_STEP3 = _attributed(
    "(?:steptml:)?",
    r"<｜tool_calls_begin｜>",
    native="<steptml:",
    literal_wrapper="<｜tool_calls_begin｜>",
    literal_prefix="steptml:",
    filler=r"<｜tool_call_begin｜>(?:function)?(?:<｜tool_sep｜>)?|<｜tool_call_end｜>",
    extra_literals=("<｜tool_calls_end｜>", "<｜tool_call_begin｜>", "<｜tool_call_end｜>", "<｜tool_sep｜>"),
)


def _step3() -> Tagged:
    tags = _STEP3.tags
    fixed = Tags(
        **{**{name: getattr(tags, name) for name in tags.__dataclass_fields__}, "wrapper_close": "<｜tool_calls_end｜>"}
    )
    begin, sep, end = "<｜tool_call_begin｜>", "<｜tool_sep｜>", "<｜tool_call_end｜>"
    return Tagged(
        fixed,
        tuple(word for word in _STEP3.literals if word != "</｜tool_calls_begin｜>"),
        "<",
        (
            "<｜tool_calls_begin｜>\n",
            "<｜tool_calls_end｜>",
            begin + "function" + sep + '<steptml:invoke name="{name}">',
            "</steptml:invoke>" + end + "\n",
            '<steptml:parameter name="{key}">{value}</steptml:parameter>',
        ),
        exact_prefix="<steptml:",
        result="{content}",
        prompt=_STEP3.prompt,
    )


def equals(
    wrapper: str,
    literal_wrapper: str,
    *,
    each: bool,
    literals: tuple[str, ...] = (),
    frame: bool = True,
    line: str = "\n",
) -> Tagged:
    """The family `<function=N><parameter=K>V</parameter></function>`."""
    close = literal_wrapper.replace("<", "</", 1)
    return Tagged(
        Tags(
            wrapper=wrapper,
            wrapper_close=wrapper.replace("<", "</", 1) if wrapper else r"</(?:tool_call|seed:tool_call)>",
            call=r"""<function(?:=|(?P<odd>\s+(?:name\s*=\s*)?))(?P<name>[^<>\n]{1,200})>""",
            call_close=r"</function(?P<cbad>[^<>\n\w][^<>\n]{0,7}|\d[^<>\n]{0,7})?>",
            param=r"""<parameter(?:=|(?P<podd>\s+(?:name\s*=\s*)?))(?P<key>[^<>\n]{1,200})>""",
            param_close=r"</parameter(?:>|(?P<pbad>[\d/ .:;-][^<>\n]{0,7})>|(?P<pcut>)(?=\s*<parameter[=\s]))",
            bare_param="<parameter>",
            garbled=r"""<(?!/)(?!function|parameter)[A-Za-z_]{3,20}=(?P<gname>NAMES)>(?=\s{0,20}<parameter=|\s{0,20}</function>)""",
            call_start=r"<function(?=[=\s])",
            param_start=r"<parameter(?=[=\s>])",
        ),
        literals=((literal_wrapper, close) if literal_wrapper else ())
        + ("<function=", "</function>", "</parameter>", *literals),
        firsts="<",
        write=(
            literal_wrapper + line,
            close,
            "<function={name}>" + line,
            "</function>" + line,
            f"<parameter={{key}}>{line}{{value}}{line}</parameter>{line}"
            if frame
            else "<parameter={key}>{value}</parameter>" + line,
        ),
        newline_frame=True,
        missing_wrapper="open_tag_inferred",
        wrapper_each=each,
        implied_close=True,
        result="<tool_response>\n{content}\n</tool_response>",
        prompt=PROMPT + "{example}",
    )


QWEN_CODER = equals("<tool_call>", "<tool_call>", each=True)
SEED = equals("<seed:tool_call>", "<seed:tool_call>", each=False, frame=False)

MINICPM = Tagged(
    Tags(
        wrapper="",
        wrapper_close=r"(?!)",
        call=r"""<function\s+name\s*=\s*["'](?P<name>[^"'<>\n]{1,200})["']\s*>""",
        call_close=r"</function(?P<cbad>[^<>\n\w][^<>\n]{0,7}|\d[^<>\n]{0,7})?>",
        param=r"""<param(?P<podd>eter)?\s+name\s*=\s*["'](?P<key>[^"'<>\n]{1,200})["']\s*>""",
        param_close=r"</param(?:eter)?(?:>|(?P<pbad>[\d/ .:;-][^<>\n]{0,7})>)",
        bare_param="<param>",
        call_start=r"<function(?=[\s=])",
        param_start=r"<param(?:eter)?(?=[\s=>])",
    ),
    literals=('<function name="', "</function>", "</param>", '<param name="'),
    firsts="<",
    write=("", "", '<function name="{name}">', "</function>", '<param name="{key}">{value}</param>'),
    missing_wrapper="",
    cdata=True,
    result="<tool_response>\n{content}\n</tool_response>",
    prompt=PROMPT + "{example}",
)

KIMI_K3 = Tagged(
    Tags(
        wrapper=r"<\|open\|>tools<\|sep\|>",
        wrapper_close=r"<\|close\|>tools<\|sep\|>",
        call=r"""<\|open\|>call\s+tool="(?P<name>[^"<>\n]{1,200})"[^<>\n]{0,80}<\|sep\|>""",
        call_close=r"<\|close\|>call<\|sep\|>",
        param=r"""<\|open\|>argument\s+key="(?P<key>[^"<>\n]{1,200})"(?P<attrs>[^<>\n]{0,80})<\|sep\|>""",
        param_close=r"<\|close\|>argument<\|sep\|>",
        call_start=r"<\|open\|>call ",
        param_start=r"<\|open\|>argument ",
    ),
    literals=(
        "<|open|>tools<|sep|>",
        "<|close|>tools<|sep|>",
        "<|close|>call<|sep|>",
        "<|close|>argument<|sep|>",
        "<|open|>call ",
        "<|open|>argument ",
    ),
    firsts="<",
    write=(
        "<|open|>tools<|sep|>",
        "<|close|>tools<|sep|>",
        '<|open|>call tool="{name}" index="{index}"<|sep|>',
        "<|close|>call<|sep|>",
        '<|open|>argument key="{key}" type="{type}"<|sep|>{value}<|close|>argument<|sep|>',
    ),
    typed=True,
    tag_end="<|sep|>",
    result='<|open|>tool name="{name}"<|sep|>{content}<|close|>tool<|sep|>',
    prompt=PROMPT + "{example}",
)


def _keyed(
    wrapper: str, call: str, close: str, sep: str, literals: tuple[str, ...], write: tuple[str, str, str, str, str]
) -> Keyed:
    suffix = r"(?::[\w-]{1,40})?"
    return Keyed(
        Tags(
            wrapper=wrapper,
            wrapper_close=wrapper.replace("<", "</", 1),
            call=call + r"\s*+(?P<name>[^<>{}\[\]\s\\][^<>{}\[\]\n\\]{0,199}?)(?:\s|\\n)*+" + sep,
            call_close=close,
            param=rf"<arg_key{suffix}>(?P<key>[^<>\n]{{1,200}})</arg_key{suffix}>(?:\s|\\n)*+<arg_value{suffix}>",
            param_close=rf"</arg_value{suffix}(?P<pbad>[\d/ .;-][^<>\n]{{0,7}})?>",
            filler=r"\\n",
            call_start=call,
            param_start=rf"<arg_key{suffix}>",
        ),
        literals=literals,
        firsts="<\\",
        write=write,
        missing_wrapper="",
        wrapper_each=False,
        result="<|observation|>\n<tool_response>\n{content}\n</tool_response>",
        prompt=PROMPT + "{example}",
    )


GLM = _keyed(
    "",
    "<tool_call>",
    "</tool_call>",
    r"(?=<arg_key>|</tool_call>|\n|\Z)",
    ("<tool_call>", "</tool_call>", "</arg_value>", "<arg_key>", "</arg_key>", "<arg_value>"),
    ("", "", "<tool_call>{name}\n", "</tool_call>", "<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n"),
)
HY = _keyed(
    r"<tool_calls(?::[\w-]{1,40})?>",
    r"<tool_call(?::[\w-]{1,40})?>",
    r"</tool_call(?::[\w-]{1,40})?>",
    r"(?:<tool_sep(?::[\w-]{1,40})?>|(?=<arg_key|</tool_call))",
    ("<tool_calls>", "</tool_calls>", "<tool_call>", "</tool_call>", "<tool_sep>", "</arg_value>", "<arg_key>"),
    (
        "<tool_calls>",
        "</tool_calls>",
        "<tool_call>{name}<tool_sep>",
        "</tool_call>",
        "<arg_key>{key}</arg_key><arg_value>{value}</arg_value>",
    ),
)

STEP3 = _step3()
FUNCTION_JSON = replace(equals("", "", each=True), missing_wrapper="")
