"""The families that write JSON or Python between tokens, spelt out."""

from __future__ import annotations

from onspec.dialects.gemma import Gemma
from onspec.dialects.headed import Headed
from onspec.dialects.json_calls import JsonCalls
from onspec.dialects.pythonic import Pythonic
from onspec.dialects.write import PROMPT

DEEPSEEK_LITERALS = (
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


def deepseek(fenced: bool) -> Headed:
    gap = r"(?:▁|_|\\_| )"
    return Headed(
        section=rf"<[｜|]tool{gap}calls(?:{gap}begin)?[｜|]>",
        section_end=rf"<[｜|]tool{gap}calls{gap}end[｜|]>",
        call=rf"<[｜|]tool{gap}call{gap}begin[｜|]>",
        call_end=rf"<[｜|]tool{gap}call{gap}end[｜|]>",
        separator=rf"(?:\A|(?<!function))<[｜|]tool{gap}sep[｜|]>|(?=\n\s*(?:```|\{{))",
        name=rf"(?:function<[｜|]tool{gap}sep[｜|]>)?(?P<name>[^<>{{}}\n]{{1,200}})",
        literals=DEEPSEEK_LITERALS,
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
        prompt=PROMPT + "<｜tool▁calls▁begin｜>...",
    )


KIMI = Headed(
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
    prompt=PROMPT + "<|tool_calls_section_begin|>...",
)
MISTRAL_ARGS = Headed(
    call=r"\[TOOL_CALLS\](?!\s*[\[{])",
    name=r"(?P<name>[^\[\]<>{}\n]{1,200}?)(?:\[CALL_ID\](?P<id>[^\[\]<>{}\s]{1,64}))?",
    separator=r"\[ARGS\]",
    literals=("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[/TOOL_CALLS]"),
    firsts="[",
    write=("", "[TOOL_CALLS]{name}{call_id}[ARGS]{arguments}", "", ""),
    result="[TOOL_RESULTS]{content}[/TOOL_RESULTS]",
    prompt="[AVAILABLE_TOOLS]{tools}[/AVAILABLE_TOOLS]",
)
MISTRAL_JSON = JsonCalls(
    opens=("[TOOL_CALLS]",),
    as_list=True,
    id_key="",
    result="[TOOL_RESULTS]{content}[/TOOL_RESULTS]",
    prompt="[AVAILABLE_TOOLS]{tools}[/AVAILABLE_TOOLS]",
)

HERMES = JsonCalls(
    opens=("<tool_call>",),
    closes=("</tool_call>",),
    misspelt=("<tools>", "<tool_calls>", "<function_call>"),
    repeat=True,
    newline=True,
    prompt=PROMPT + '{open}\n{{"name": <name>, "arguments": <arguments>}}\n{close}',
)
LISTS = JsonCalls(
    opens=("<tool_calls>",), closes=("</tool_calls>",), as_list=True, prompt=PROMPT + "{open}[...]{close}"
)
NEMOTRON = JsonCalls(
    opens=("<TOOLCALL>",), closes=("</TOOLCALL>",), as_list=True, string_arguments=True,
    result="<TOOL_RESPONSE>[{content}]</TOOL_RESPONSE>", prompt="<AVAILABLE_TOOLS>[{tools}]</AVAILABLE_TOOLS>",
)  # fmt: skip
GRANITE = JsonCalls(
    opens=("<|tool_call|>",), misspelt=("<tool_call>",), as_list=True,
    result="<|start_of_role|>tool_response<|end_of_role|>{content}", prompt=PROMPT + "{open}[...]",
)  # fmt: skip
GRANITE_20B = JsonCalls(
    opens=("<function_call>",), repeat=True, sentinel=("no_function",),
    result="<function_response>{content}", prompt=PROMPT + "{open} ...",
)  # fmt: skip
PHI = JsonCalls(
    opens=("functools[", "<|tool_call|>", "<|tool_calls|>"),
    closes=(),
    as_list=True,
    result="<|tool_response|>{content}<|/tool_response|>",
    prompt="<|tool|>[{tools}]<|/tool|>",
)
COHERE = JsonCalls(
    opens=("<|START_ACTION|>",), closes=("<|END_ACTION|>",), names=("tool_name",), arguments=("parameters",),
    as_list=True, id_key="tool_call_id", result="<|START_TOOL_RESULT|>{content}<|END_TOOL_RESULT|>",
    prompt=PROMPT + "{open}[...]{close}",
)  # fmt: skip
LLAMA = JsonCalls(
    opens=("<|python_tag|>",), arguments=("parameters", "arguments"), result="{content}", prompt=PROMPT + "{open}",
    may=(("type", '{"const":"function"}'),),
)  # fmt: skip
INTERNLM = JsonCalls(
    opens=("<|action_start|><|plugin|>", "<|action_start|> <|plugin|>"), closes=("<|action_end|>",),
    arguments=("parameters", "arguments"), repeat=True, result="{content}", prompt=PROMPT + "{open}",
)  # fmt: skip
LONGCAT = JsonCalls(
    opens=("<longcat_tool_call>",),
    closes=("</longcat_tool_call>",),
    repeat=True,
    newline=True,
    prompt=PROMPT + "{open}",
)
APERTUS = JsonCalls(
    opens=("<|tools_prefix|>",), closes=("<|tools_suffix|>",), as_list=True, keyed=True, prompt=PROMPT + "{open}"
)
MINIMAX_M1 = JsonCalls(opens=("<tool_calls>",), closes=("</tool_calls>",), newline=True, prompt=PROMPT + "{open}")

LFM_JSON = JsonCalls(
    opens=("<|tool_call_start|>",), closes=("<|tool_call_end|>",), as_list=True, prompt=PROMPT + "{open}[...]"
)
LFM = Pythonic(("<|tool_call_start|>",), ("<|tool_call_end|>",), prompt=PROMPT + "<|tool_call_start|>[f(a=1)]")
OLMO = Pythonic(("<function_calls>",), ("</function_calls>",), lines=True, prompt=PROMPT + "<function_calls>f(a=1)")
PYTHONIC = Pythonic(("<|python_start|>",), ("<|python_end|>",), bare=True, prompt=PROMPT + "[f(a=1)]")
LINES = Pythonic(lines=True, prompt=PROMPT + "f(a=1)")

GEMMA4_JSON = JsonCalls(opens=("<|tool_call>",), closes=("<tool_call|>",), prompt=PROMPT + "{open}")
GEMMA4 = Gemma(
    "<|tool_call>", "<tool_call|>", '<|"|>', doubled=True,
    result='<|tool_response>response:{name}{output:<|"|>{content}<|"|>}<tool_response|>', prompt="{tools}",
)  # fmt: skip
FUNCTIONGEMMA = Gemma(
    "<start_function_call>", "<end_function_call>", "<escape>",
    result="<start_function_response>response:{name}{result:<escape>{content}<escape>}<end_function_response>",
    prompt="{tools}",
)  # fmt: skip

FUNCTIONARY = Headed(
    call=r">>>(?=[A-Za-z_])",
    name=r"(?P<name>[\w.-]{1,200})",
    separator=r"\n(?=\s*\{)",
    literals=(">>>",),
    firsts=">",
    write=("", ">>>{name}\n{arguments}", "\n", ""),
    prompt=PROMPT + ">>>f",
)
LLAMA4_JSON = JsonCalls(
    opens=("<|python_start|>",),
    closes=("<|python_end|>",),
    arguments=("parameters", "arguments"),
    prompt=PROMPT + "{open}",
)
PYTHON_TAG = Pythonic(("<|python_tag|>",), lines=True, suffix=".call", prompt=PROMPT + "<|python_tag|>f.call(a=1)")
PHI_AUTO = JsonCalls(opens=("functools[",), as_list=True, prompt=PROMPT)
XLAM_LIST = JsonCalls(opens=("[TOOL_CALLS]", "<tool_call>"), as_list=True, prompt=PROMPT + "[...]")
