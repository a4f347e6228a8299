"""The table of dialects: one row each."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from onspec.contract.toolset import Toolset
from onspec.dialects.dialect import Context, Dialect, Family
from onspec.dialects.draft import NOT_CALL, Block, More, NotCall, Reading
from onspec.dialects.elements import NS, MarkedElements, ToolTags
from onspec.dialects.gemma import Gemma
from onspec.dialects.harmony import CALL, END, RETURN, THINKING_END, Harmony
from onspec.dialects.headed import Headed
from onspec.dialects.json_calls import JsonCalls
from onspec.dialects.keyed import Keyed
from onspec.dialects.pythonic import Pythonic
from onspec.dialects.tagged import Tagged, Tags
from onspec.errors import InputError
from onspec.message import Call, Result

_PROMPT = "# Tools\n\nYou may call these tools:\n<tools>\n{tools}\n</tools>\n\nWrite a call like this:\n"


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
            param_close=rf"</{prefix}{param}(?:>|(?P<pbad>[\d/ .:;-][^<>\n]{{0,7}})>|(?P<pcut>)(?=\s*<{prefix}{param}\s))",
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
        )
        + extra_literals,
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
        result=result
        or "<function_results>\n<result>\n<name>{name}</name>\n<output>{content}</output>\n</result>\n</function_results>",
        prompt=_PROMPT + "{example}",
    )


_ANTHROPIC = _attributed(
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
_DSML = _attributed(
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
_MINIMAX = _attributed(
    "",
    r"<minimax:tool_call>",
    native="<invoke",
    literal_wrapper="<minimax:tool_call>",
    result="<response>{content}</response>",
)
_GLIMMER = _attributed(
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


def _equals(
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
        prompt=_PROMPT + "{example}",
    )


_QWEN_CODER = _equals("<tool_call>", "<tool_call>", each=True)
_SEED = _equals("<seed:tool_call>", "<seed:tool_call>", each=False, frame=False)

_MINICPM = Tagged(
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
    prompt=_PROMPT + "{example}",
)

_KIMI_K3 = Tagged(
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
    prompt=_PROMPT + "{example}",
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
        prompt=_PROMPT + "{example}",
    )


_GLM = _keyed(
    "",
    "<tool_call>",
    "</tool_call>",
    r"(?=<arg_key>|</tool_call>|\n|\Z)",
    ("<tool_call>", "</tool_call>", "</arg_value>", "<arg_key>", "</arg_key>", "<arg_value>"),
    ("", "", "<tool_call>{name}\n", "</tool_call>", "<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n"),
)
_HY = _keyed(
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

_DEEPSEEK_LITERALS = (
    "<｜tool▁calls▁begin｜>",
    "<｜tool_calls_begin｜>",
    "<｜tool calls begin｜>",
    "<｜tool\\_calls\\_begin｜>",
    "<｜tool▁calls｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁sep｜>",
)


def _deepseek(fenced: bool) -> Headed:
    gap = r"(?:▁|_|\\_| )"
    return Headed(
        section=rf"<[｜|]tool{gap}calls(?:{gap}begin)?[｜|]>",
        section_end=rf"<[｜|]tool{gap}calls{gap}end[｜|]>",
        call=rf"<[｜|]tool{gap}call{gap}begin[｜|]>",
        call_end=rf"<[｜|]tool{gap}call{gap}end[｜|]>",
        separator=rf"(?:\A|(?<!function))<[｜|]tool{gap}sep[｜|]>|(?=\n\s*(?:```|\{{))",
        name=rf"(?:function<[｜|]tool{gap}sep[｜|]>)?(?P<name>[^<>{{}}\n]{{1,200}})",
        literals=_DEEPSEEK_LITERALS,
        firsts="<",
        write=(
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁call▁begin｜>"
            + (
                "function<｜tool▁sep｜>{name}\n```json\n{arguments}\n```"
                if fenced
                else "{name}<｜tool▁sep｜>{arguments}"
            )
            + "<｜tool▁call▁end｜>",
            "\n" if fenced else "",
            "<｜tool▁calls▁end｜>",
        ),
        result="<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>{content}<｜tool▁output▁end｜><｜tool▁outputs▁end｜>",
        prompt=_PROMPT + "<｜tool▁calls▁begin｜>...",
    )


_KIMI = Headed(
    section=r"<\|tool_calls?_section_begin\|>",
    section_end=r"<\|tool_calls?_section_end\|>",
    call=r"<\|tool_call_begin\|>",
    call_end=r"<\|tool_call_end\|>",
    separator=r"<\|tool_call_arguments?_begin\|>",
    name=r"(?P<id>(?:functions[.:])?(?P<name>[^<>{}\n]{1,200}?)(?::(?:\d{1,6}))?)",
    literals=(
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
        "<|tool_call_section_begin|>",
        "<|tool_call_section_end|>",
        "<|tool_call_begin|>",
        "<|tool_call_end|>",
        "<|tool_call_argument_begin|>",
    ),
    firsts="<",
    write=(
        "<|tool_calls_section_begin|>",
        "<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
        "",
        "<|tool_calls_section_end|>",
    ),
    result="<|im_system|>tool<|im_middle|>## Return of {id}\n{content}<|im_end|>",
    prompt=_PROMPT + "<|tool_calls_section_begin|>...",
)
_MISTRAL_ARGS = Headed(
    call=r"\[TOOL_CALLS\](?!\s*[\[{])",
    name=r"(?P<name>[^\[\]<>{}\n]{1,200}?)(?:\[CALL_ID\](?P<id>[^\[\]<>{}\s]{1,64}))?",
    separator=r"\[ARGS\]",
    literals=("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[/TOOL_CALLS]"),
    firsts="[",
    write=("", "[TOOL_CALLS]{name}[ARGS]{arguments}", "", ""),
    result="[TOOL_RESULTS]{content}[/TOOL_RESULTS]",
    prompt="[AVAILABLE_TOOLS]{tools}[/AVAILABLE_TOOLS]",
)
_MISTRAL_JSON = JsonCalls(
    opens=("[TOOL_CALLS]",),
    as_list=True,
    id_key="",
    result="[TOOL_RESULTS]{content}[/TOOL_RESULTS]",
    prompt="[AVAILABLE_TOOLS]{tools}[/AVAILABLE_TOOLS]",
)


@dataclass(frozen=True)
class Several:
    """Families that are tried in turn at each marker; the first that reads a call there wins.

    Attributes:
        families: In the order in which they are tried; the first one writes.
    """

    families: tuple[Family, ...]

    @cached_property
    def firsts(self) -> str:
        return "".join(sorted({char for family in self.families for char in family.firsts}))

    @cached_property
    def literals(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(word for family in self.families for word in family.literals))

    def opener(self, names: tuple[str, ...]) -> str:
        return "|".join(pattern for pattern in (family.opener(names) for family in self.families) if pattern)

    def orphans(self) -> str:
        parts = [family.orphans() for family in self.families]
        return "|".join(part for part in parts if part)

    @cached_property
    def hold(self) -> str:
        holds = dict.fromkeys(family.hold for family in self.families if family.hold)
        return "|".join(holds)

    def read(self, text: str, pos: int, inside: object | None, context: Context, final: bool) -> Reading:
        if isinstance(inside, tuple):
            family, inner = inside
            return self._tag(family, family.read(text, pos, inner, context, final))
        refused: Block | None = None
        for family in self.families:
            pattern = _compiled(family.opener(context.names))
            if not pattern.match(text, pos):
                continue
            reading = family.read(text, pos, None, context, final)
            if isinstance(reading, More):
                return reading
            if isinstance(reading, NotCall):
                continue
            if reading.drafts and all(draft.fault and draft.fault.code in _VAGUE for draft in reading.drafts):
                refused = refused or reading
                continue
            return self._tag(family, reading)
        return refused or NOT_CALL

    @staticmethod
    def _tag(family: Family, reading: Reading) -> Reading:
        if isinstance(reading, Block) and reading.inside is not None:
            reading.inside = (family, reading.inside)
        return reading

    def write_calls(self, calls: tuple[Call, ...], tools: Toolset) -> str:
        return self.families[0].write_calls(calls, tools)

    def write_results(self, results: tuple[Result, ...]) -> str:
        return self.families[0].write_results(results)

    def write_tools(self, tools: Toolset) -> str:
        return self.families[0].write_tools(tools)


_VAGUE = frozenset({"no_body", "no_name"})
_CACHE: dict[str, re.Pattern[str]] = {}


def _compiled(pattern: str) -> re.Pattern[str]:
    found = _CACHE.get(pattern)
    if found is None:
        if len(_CACHE) > 512:
            _CACHE.clear()
        found = _CACHE[pattern] = re.compile(pattern or r"(?!)")
    return found


_HERMES = JsonCalls(
    opens=("<tool_call>",),
    closes=("</tool_call>",),
    misspelt=("<tools>", "<tool_calls>", "<function_call>"),
    repeat=True,
    newline=True,
    prompt=_PROMPT + '{open}\n{{"name": <name>, "arguments": <arguments>}}\n{close}',
)
_LISTS = JsonCalls(
    opens=("<tool_calls>",), closes=("</tool_calls>",), as_list=True, prompt=_PROMPT + "{open}[...]{close}"
)
_NEMOTRON = JsonCalls(
    opens=("<TOOLCALL>",), closes=("</TOOLCALL>",), as_list=True, string_arguments=True,
    result="<TOOL_RESPONSE>[{content}]</TOOL_RESPONSE>", prompt="<AVAILABLE_TOOLS>[{tools}]</AVAILABLE_TOOLS>",
)  # fmt: skip
_GRANITE = JsonCalls(
    opens=("<|tool_call|>",), misspelt=("<tool_call>",), as_list=True,
    result="<|start_of_role|>tool_response<|end_of_role|>{content}", prompt=_PROMPT + "{open}[...]",
)  # fmt: skip
_GRANITE_20B = JsonCalls(
    opens=("<function_call>",), repeat=True, sentinel=("no_function",),
    result="<function_response>{content}", prompt=_PROMPT + "{open} ...",
)  # fmt: skip
_PHI = JsonCalls(
    opens=("functools[", "<|tool_call|>", "<|tool_calls|>"),
    closes=(),
    as_list=True,
    result="<|tool_response|>{content}<|/tool_response|>",
    prompt="<|tool|>[{tools}]<|/tool|>",
)
_PHI_TAGS = JsonCalls(
    opens=("<|tool_call|>", "<|tool_calls|>"), closes=("<|/tool_call|>", "<|/tool_calls|>"), as_list=True,
    prompt=_PROMPT + "{open}",
)  # fmt: skip
_FUNCTOOLS = JsonCalls(opens=("functools[",), as_list=True, result="{content}", prompt="<|tool|>[{tools}]<|/tool|>")
_COHERE = JsonCalls(
    opens=("<|START_ACTION|>",), closes=("<|END_ACTION|>",), names=("tool_name",), arguments=("parameters",),
    as_list=True, id_key="tool_call_id", result="<|START_TOOL_RESULT|>{content}<|END_TOOL_RESULT|>",
    prompt=_PROMPT + "{open}[...]{close}",
)  # fmt: skip
_LLAMA = JsonCalls(
    opens=("<|python_tag|>",), arguments=("parameters", "arguments"), result="{content}", prompt=_PROMPT + "{open}",
)  # fmt: skip
_INTERNLM = JsonCalls(
    opens=("<|action_start|><|plugin|>", "<|action_start|> <|plugin|>"), closes=("<|action_end|>",),
    arguments=("parameters", "arguments"), repeat=True, result="{content}", prompt=_PROMPT + "{open}",
)  # fmt: skip
_LONGCAT = JsonCalls(
    opens=("<longcat_tool_call>",),
    closes=("</longcat_tool_call>",),
    repeat=True,
    newline=True,
    prompt=_PROMPT + "{open}",
)
_APERTUS = JsonCalls(
    opens=("<|tools_prefix|>",), closes=("<|tools_suffix|>",), as_list=True, keyed=True, prompt=_PROMPT + "{open}"
)
_MINIMAX_M1 = JsonCalls(opens=("<tool_calls>",), closes=("</tool_calls>",), newline=True, prompt=_PROMPT + "{open}")

_LFM = Pythonic(("<|tool_call_start|>",), ("<|tool_call_end|>",), prompt=_PROMPT + "<|tool_call_start|>[f(a=1)]")
_OLMO = Pythonic(("<function_calls>",), ("</function_calls>",), lines=True, prompt=_PROMPT + "<function_calls>f(a=1)")
_PYTHONIC = Pythonic(("<|python_start|>",), ("<|python_end|>",), bare=True, prompt=_PROMPT + "[f(a=1)]")
_LINES = Pythonic(lines=True, prompt=_PROMPT + "f(a=1)")

_GEMMA4 = Gemma(
    "<|tool_call>", "<tool_call|>", '<|"|>', doubled=True,
    result='<|tool_response>response:{name}{output:<|"|>{content}<|"|>}<tool_response|>', prompt="{tools}",
)  # fmt: skip
_FUNCTIONGEMMA = Gemma(
    "<start_function_call>", "<end_function_call>", "<escape>",
    result="<start_function_response>response:{name}{result:<escape>{content}<escape>}<end_function_response>",
    prompt="{tools}",
)  # fmt: skip

_FUNCTIONARY = Headed(
    call=r">>>(?=[A-Za-z_])",
    name=r"(?P<name>[\w.-]{1,200})",
    separator=r"\n(?=\s*\{)",
    literals=(">>>",),
    firsts=">",
    write=("", ">>>{name}\n{arguments}", "\n", ""),
    prompt=_PROMPT + ">>>f",
)

_CHATML = ("<|im_end|>", "<|im_start|>", "<|endoftext|>")
_LLAMA_ENDS = ("<|eot_id|>", "<|eom_id|>", "<|begin_of_text|>", "<|end_of_text|>")
_MISTRAL_ENDS = ("</s>", "[/TOOL_CALLS]")
_DEEPSEEK_ENDS = ("<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>")
_GEMMA_ENDS = ("<end_of_turn>", "<start_function_response>", "<turn|>", "<|tool_response>", "<eos>")
_GLM_ENDS = ("<|observation|>", "<|user|>", "<|assistant|>", "<|endoftext|>")
_THINK = (("<think>", "</think>"), ("<thinking>", "</thinking>"))

_FUNCTION_JSON = replace(_equals("", "", each=True), missing_wrapper="")
_PYTHON_TAG = Pythonic(("<|python_tag|>",), suffix=".call", prompt=_PROMPT + "<|python_tag|>f.call(a=1)")
_PHI_AUTO = JsonCalls(opens=("functools[",), as_list=True, prompt=_PROMPT)
_XLAM_LIST = JsonCalls(opens=("[TOOL_CALLS]", "<tool_call>"), as_list=True, prompt=_PROMPT + "[...]")

_STEP3_FAMILY = _step3()
_HERMES_FIRST = Several((_HERMES, _QWEN_CODER, _GLM))
_QWEN_FIRST = Several((_QWEN_CODER, _HERMES, _GLM))
_GLM_FIRST = Several((_GLM, _HERMES, _QWEN_CODER))
_SEED_FIRST = Several((_SEED, _FUNCTION_JSON))
_DSML_FIRST = _DSML
_MISTRAL_A = Several((_MISTRAL_ARGS, _MISTRAL_JSON))
_MISTRAL_J = Several((_MISTRAL_JSON, _MISTRAL_ARGS))
_AUTO = Several(
    (
        _GRANITE_20B, _HERMES, _QWEN_CODER, _GLM, _ANTHROPIC, _OLMO, _DSML, _MINIMAX, _STEP3_FAMILY, _SEED, _GLIMMER, _MINICPM,
        _deepseek(False), _KIMI, _KIMI_K3, _MISTRAL_ARGS, _MISTRAL_JSON, _GRANITE, _PHI_AUTO, _COHERE, _LFM,
        Pythonic(("<|python_start|>",), ("<|python_end|>",)), _LLAMA, _PYTHON_TAG, _GEMMA4, _FUNCTIONGEMMA,
        MarkedElements(), _NEMOTRON, _LISTS, _HY, _INTERNLM, _LONGCAT, _APERTUS, Harmony(),
        ToolTags(declared_only=True),
    ),
)  # fmt: skip

_XML_RECOVERS = (
    "lost envelope or opener", "garbled tag name", "wrong or damaged closer", "missing closer", "doubled closer",
    "damaged argument header", "arguments as one JSON object",
)  # fmt: skip
_JSON_RECOVERS = (
    "missing closer",
    "doubled braces",
    "missing last brace",
    "nested list",
    "lost markers",
    "broken inner JSON",
)


def _row(name: str, models: str, family: Family, example: str, **more: Any) -> Dialect:
    return Dialect(name=name, models=models, family=family, example=example, **more)


_INVOKE = '<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n</invoke>'
_FUNCTION = "<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>"
_OBJECT = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'

_TABLE: tuple[Dialect, ...] = (
    _row("anthropic_xml", "Claude, leaked", _ANTHROPIC, f"<function_calls>\n{_INVOKE}\n</function_calls>",
         stray=True, shape="function_calls > invoke name= > parameter name=", recovers=(*_XML_RECOVERS, "stray lead word")),
    _row("hermes_json", "Hermes 2 and 3, Qwen2.5, Qwen3, QwQ, Granite 4.0", _HERMES_FIRST,
         f"<tool_call>\n{_OBJECT}\n</tool_call>", controls=_CHATML, prefilled=True,
         shape="<tool_call> JSON object </tool_call>", recovers=_JSON_RECOVERS),
    _row("qwen3_coder_xml", "Qwen3-Coder, Qwen3.5 and later", _QWEN_FIRST, f"<tool_call>\n{_FUNCTION}\n</tool_call>",
         controls=_CHATML, prefilled=True, shape="<tool_call> <function=N> <parameter=K>", recovers=_XML_RECOVERS),
    _row("nemotron3_xml", "Nemotron 3", _QWEN_FIRST, f"<tool_call>\n{_FUNCTION}\n</tool_call>",
         controls=_CHATML, prefilled=True, shape="as qwen3_coder_xml", recovers=_XML_RECOVERS),
    _row("step3p5", "Step-3.5 and later", _QWEN_FIRST, f"<tool_call>\n{_FUNCTION}\n</tool_call>",
         controls=_CHATML, prefilled=True, shape="as qwen3_coder_xml", recovers=_XML_RECOVERS),
    _row("mistral_json", "Mistral, tokenizer up to v7", _MISTRAL_J, f"[TOOL_CALLS][{_OBJECT}]", controls=_MISTRAL_ENDS,
         think=(("[THINK]", "[/THINK]"), *_THINK), shape="[TOOL_CALLS] JSON list", recovers=_JSON_RECOVERS),
    _row("mistral_args", "Mistral v11 and later, Devstral, Ministral, Magistral", _MISTRAL_A,
         '[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}', controls=_MISTRAL_ENDS,
         think=(("[THINK]", "[/THINK]"), *_THINK), shape="[TOOL_CALLS] N [ARGS] JSON", recovers=("lost separator",)),
    _row("deepseek_v3", "DeepSeek V3, R1", _deepseek(True),
         "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
         '{"city":"Oslo"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>', controls=_DEEPSEEK_ENDS, prefilled=True,
         shape="calls begin, call begin, type, sep, N, fenced JSON", recovers=("other spellings of the tokens", "lost section")),
    _row("deepseek_v31", "DeepSeek V3.1", _deepseek(False),
         '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city":"Oslo"}<｜tool▁call▁end｜>'
         "<｜tool▁calls▁end｜>", controls=_DEEPSEEK_ENDS, prefilled=True,
         shape="calls begin, call begin, N, sep, JSON", recovers=("other spellings of the tokens", "lost separator")),
    _row("deepseek_dsml", "DeepSeek V3.2, V4", _DSML,
         '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Oslo'
         "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>", controls=_DEEPSEEK_ENDS, prefilled=True,
         shape="DSML tool_calls > invoke name= > parameter name= string=",
         recovers=(*_XML_RECOVERS, "lost namespace", "wrapped arguments")),
    _row("kimi_k2", "Kimi K2, K2.5", _KIMI,
         '<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>'
         '{"city":"Oslo"}<|tool_call_end|><|tool_calls_section_end|>', controls=("<|im_end|>",), prefilled=True,
         shape="section begin, call begin, functions.N:i, argument begin, JSON", recovers=("lost section or call marker",)),
    _row("kimi_k3", "Kimi K3", _KIMI_K3,
         '<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"'
         "<|sep|>Oslo<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
         controls=("<|im_end|>", "<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|open|>message<|sep|>",
                   "<|close|>message<|sep|>"),
         think=(("<|open|>think<|sep|>", "<|close|>think<|sep|>"), *_THINK),
         shape="open tools, open call tool=, open argument key= type=", recovers=_XML_RECOVERS),
    _row("glm45", "GLM-4.5 and later, Laguna", _GLM_FIRST,
         "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>", controls=_GLM_ENDS,
         prefilled=True, shape="<tool_call> N, arg_key, arg_value",
         recovers=("keys before values", "written-out newlines", "missing closer", "wrong closer")),
    _row("llama3_json", "Llama 3.1 to 3.3", Several((_LLAMA, _PYTHON_TAG, _FUNCTION_JSON)),
         '{"name": "get_weather", "parameters": {"city": "Oslo"}}', controls=_LLAMA_ENDS, bare_native=("json",),
         shape="the whole reply is the JSON object; <|python_tag|>; <function=N>JSON</function>", recovers=_JSON_RECOVERS),
    _row("llama_python_tag", "Llama 3.1 built-in tools", Several((_PYTHON_TAG, _LLAMA, _FUNCTION_JSON)),
         '<|python_tag|>get_weather.call(city="Oslo")', controls=_LLAMA_ENDS, bare_native=("json",),
         shape="<|python_tag|> N.call(K=V)", recovers=_JSON_RECOVERS),
    _row("pythonic", "Llama 3.2 and 4, ToolACE", _PYTHONIC, '[get_weather(city="Oslo")]', controls=_LLAMA_ENDS,
         shape="[N(K=V), ...]", recovers=("prose before the list", "JSON in its place")),
    _row("lfm2", "LFM2", _LFM, '<|tool_call_start|>[get_weather(city="Oslo")]<|tool_call_end|>', controls=_CHATML,
         shape="<|tool_call_start|> [N(K=V)] <|tool_call_end|>", recovers=("missing closer",)),
    _row("olmo3", "OLMo 3", _OLMO, '<function_calls>get_weather(city="Oslo")</function_calls>', controls=_CHATML,
         shape="<function_calls> N(K=V), one a line", recovers=("missing closer",)),
    _row("granite_pythonic", "Granite 3.3, 4.0-H", _LINES, 'get_weather(city="Oslo")', bare=("lines",),
         bare_native=("lines",), shape="the whole reply is N(K=V), one a line", recovers=()),
    _row("harmony", "gpt-oss", Harmony(),
         '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Oslo"}<|call|>',
         controls=(END, CALL, RETURN, "<|endoftext|>"), think=(), thinking_end=THINKING_END, bare=("header",),
         shape="start, role, channel, recipient, constrain, message, body, call",
         recovers=("recipient in another place", "glued or misspelt header parts", "missing message token",
                   "wrong last bracket", "prose after the body", "wrapped arguments")),
    _row("minimax_m2", "MiniMax M2", _MINIMAX, f"<minimax:tool_call>\n{_INVOKE}\n</minimax:tool_call>", prefilled=True,
         controls=("[e~[",), shape="minimax:tool_call > invoke name= > parameter name=", recovers=_XML_RECOVERS),
    _row("minimax_m1", "MiniMax M1", _MINIMAX_M1, f"<tool_calls>\n{_OBJECT}\n</tool_calls>", prefilled=True,
         shape="<tool_calls> JSON lines", recovers=_JSON_RECOVERS),
    _row("minimax_m3", "MiniMax M3", MarkedElements(prompt=_PROMPT + "]<]minimax[>[<tool_call>"),
         f'{NS}<tool_call>\n{NS}<invoke name="get_weather">\n{NS}<city>Oslo{NS}</city>\n{NS}</invoke>\n{NS}</tool_call>',
         shape="a mark before every tag; one element an argument", recovers=("missing envelope",)),
    _row("functiongemma", "FunctionGemma", _FUNCTIONGEMMA,
         "<start_function_call>call:get_weather{city:<escape>Oslo<escape>}<end_function_call>", controls=_GEMMA_ENDS,
         shape="call:N{k:<escape>v<escape>}", recovers=("brackets", "quotes", "missing comma", "missing closer")),
    _row("gemma4", "Gemma 4", _GEMMA4, '<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>',
         controls=_GEMMA_ENDS, think=(("<|channel>thought\n", "<channel|>"), ("<|channel>", "<channel|>"), *_THINK),
         shape='call:N{k:<|"|>v<|"|>}', recovers=("brackets", "quotes", "missing comma", "missing closer")),
    _row("gemma3", "Gemma 3 (prompt-defined)", _PYTHONIC, '[get_weather(city="Oslo")]', controls=_GEMMA_ENDS,
         fence_is_call=True, bare=("json", "pythonic"), shape="[N(K=V)], or a fence named tool_code", recovers=()),
    _row("granite", "Granite 3.0 to 3.2", _GRANITE, f"<|tool_call|>[{_OBJECT}]", controls=("<|end_of_text|>",),
         shape="<|tool_call|> JSON list", recovers=_JSON_RECOVERS),
    _row("granite_20b", "Granite 20b-fc", _GRANITE_20B, f"<function_call> {_OBJECT}", controls=("<|end_of_text|>",),
         shape="<function_call> JSON object, repeated", recovers=_JSON_RECOVERS),
    _row("phi4_mini", "Phi-4-mini, FireFunction v2", _PHI, f"functools[{_OBJECT}]",
         controls=("<|/tool_call|>", "<|/tool_calls|>", "<|end|>", "<|im_end|>"), shape="functools JSON list",
         recovers=_JSON_RECOVERS),
    _row("cohere_cmd3", "Command R7B, Command A", _COHERE,
         '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Oslo"}}]<|END_ACTION|>',
         controls=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>", "<|END_OF_TURN_TOKEN|>"),
         think=(("<|START_THINKING|>", "<|END_THINKING|>"), *_THINK),
         shape="<|START_ACTION|> JSON list <|END_ACTION|>", recovers=_JSON_RECOVERS),
    _row("xlam", "xLAM", _XLAM_LIST, f"[{_OBJECT}]", fence_is_call=True, bare_native=("json",),
         controls=("</tool_call>", "<|im_end|>"), shape="the whole reply is the JSON list", recovers=_JSON_RECOVERS),
    _row("hunyuan_a13b", "Hunyuan A13B", _LISTS, f"<tool_calls>[{_OBJECT}]</tool_calls>",
         controls=("<answer>", "</answer>"), shape="<tool_calls> JSON list", recovers=_JSON_RECOVERS),
    _row("jamba", "Jamba", _LISTS, f"<tool_calls>[{_OBJECT}]</tool_calls>", shape="<tool_calls> JSON list",
         recovers=_JSON_RECOVERS),
    _row("nemotron_nano_v2", "Nemotron Nano v2", _NEMOTRON, f"<TOOLCALL>[{_OBJECT}]</TOOLCALL>", prefilled=True,
         shape="<TOOLCALL> JSON list", recovers=_JSON_RECOVERS),
    _row("hy_v3", "Hunyuan v3", _HY,
         "<tool_calls><tool_call>get_weather<tool_sep><arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>"
         "</tool_calls>", shape="as glm45, in an envelope, with <tool_sep>", recovers=("missing closer", "keys before values")),
    _row("seed_oss", "Seed-OSS", _SEED_FIRST,
         "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Oslo</parameter>\n</function>\n</seed:tool_call>",
         think=(("<seed:think>", "</seed:think>"), *_THINK), controls=("<seed:eos>",), prefilled=True,
         shape="as qwen3_coder_xml, in <seed:tool_call>", recovers=_XML_RECOVERS),
    _row("step3", "Step-3", _STEP3_FAMILY,
         "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"get_weather\">"
         '<steptml:parameter name="city">Oslo</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>',
         shape="steptml:invoke in tokens", recovers=_XML_RECOVERS),
    _row("minicpm5_xml", "MiniCPM 5", _MINICPM,
         '<function name="read_file"><param name="path"><![CDATA[a<b.md]]></param></function>', controls=("<|im_end|>",),
         shape="<function name=> <param name=>", recovers=("wrong or damaged closer", "missing closer")),
    _row("cline_xml", "prompt-defined: Cline, Roo, Kilo", ToolTags(prompt=_PROMPT + "<tool><argument>...</argument></tool>"),
         "<get_weather>\n<city>Oslo</city>\n</get_weather>", shape="names are the tags", recovers=()),
    _row("internlm2", "InternLM 2", _INTERNLM,
         '<|action_start|><|plugin|>{"name": "get_weather", "parameters": {"city": "Oslo"}}<|action_end|>',
         shape="<|action_start|><|plugin|> JSON object", recovers=_JSON_RECOVERS),
    _row("longcat", "LongCat", _LONGCAT, f"<longcat_tool_call>\n{_OBJECT}\n</longcat_tool_call>",
         think=(("<longcat_think>", "</longcat_think>"), *_THINK), shape="<longcat_tool_call> JSON object",
         recovers=_JSON_RECOVERS),
    _row("ernie45", "ERNIE 4.5", _HERMES_FIRST, f"<tool_call>\n{_OBJECT}\n</tool_call>", prefilled=True,
         controls=("<response>", "</response>", "</s>"), shape="as hermes_json, text in <response>", recovers=_JSON_RECOVERS),
    _row("apertus", "Apertus", _APERTUS, '<|tools_prefix|>[{"get_weather": {"city": "Oslo"}}]<|tools_suffix|>',
         think=(("<|inner_prefix|>", "<|inner_suffix|>"), *_THINK), controls=("<|assistant_end|>",),
         shape="<|tools_prefix|> list of {N: arguments}", recovers=_JSON_RECOVERS),
    _row("functionary", "Functionary v3.2", _FUNCTIONARY, '>>>get_weather\n{"city": "Oslo"}',
         controls=(">>>all\n", *_LLAMA_ENDS), shape=">>>N, newline, JSON", recovers=()),
    _row("glimmer", "Glimmer", _GLIMMER,
         '<atem:function_calls>\n<atem:invoke name="get_weather">\n<atem:parameter name="city">Oslo</atem:parameter>\n'
         "</atem:invoke>\n</atem:function_calls>", controls=("<|eom|>",), shape="as anthropic_xml, prefix atem:",
         recovers=_XML_RECOVERS),
    _row("json_args", "arguments of a structured call", JsonCalls(opens=("\x00",), prompt="{tools}"), '{"city": "Oslo"}',
         bare=(), think=(), shape="the arguments of a call to the one tool given", recovers=("closing markup at a value's end",)),
    _row("auto", "any: decided by the markers seen", _AUTO, f"<tool_call>\n{_OBJECT}\n</tool_call>", prefilled=True,
         controls=(*_CHATML, *_LLAMA_ENDS, *_MISTRAL_ENDS, *_DEEPSEEK_ENDS, *_GEMMA_ENDS, END, CALL, RETURN,
                   "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|eom|>", "<|/tool_call|>", "<|/tool_calls|>"),
         think=(*_THINK, ("[THINK]", "[/THINK]"), ("<seed:think>", "</seed:think>"),
                ("<|START_THINKING|>", "<|END_THINKING|>"), ("<|channel>", "<channel|>"),
                ("<|open|>think<|sep|>", "<|close|>think<|sep|>")),
         thinking_end=THINKING_END, bare=("json", "pythonic"), stray=True, shape="the markers of all the others",
         recovers=()),
)  # fmt: skip

DIALECTS: dict[str, Dialect] = {row.name: row for row in _TABLE}


def named(name: str) -> Dialect:
    """The dialect of that name.

    Raises:
        InputError: There is none; the message lists the names.
    """
    found = DIALECTS.get(name)
    if found is None:
        raise InputError(f"there is no dialect {name!r}; there are: {', '.join(DIALECTS)}")
    return found
