"""One call a dialect, as models write it: with its keys in another order, and with an invented key."""

from __future__ import annotations

NS = "]<]minimax[>["

# name: (a call, the same call with its keys in another order, that call with an invented key)
CALLS: dict[str, tuple[str, str, str]] = {
    "anthropic_xml": (
        '<function_calls>\n<invoke name="get_weather">\n<parameter name="city">Oslo <x> & "y"</parameter>\n'
        '<parameter name="days">2</parameter>\n</invoke>\n</function_calls>',
        '<function_calls>\n<invoke name="get_weather">\n<parameter name="days">2</parameter>\n'
        '<parameter name="city">Oslo</parameter>\n</invoke>\n</function_calls>',
        '<function_calls>\n<invoke name="get_weather">\n<parameter name="in_file">2</parameter>\n',
    ),
    "hermes_json": (
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}\n</tool_call>',
        '<tool_call>\n{"arguments": {"days": 2, "city": "Oslo"}, "name": "get_weather"}\n</tool_call>',
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "in_file": 2',
    ),
    "qwen3_coder_xml": (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
        "</function>\n</tool_call>",
        "<tool_call>\n<function=get_weather>\n<parameter=days>\n2\n</parameter>\n"
        "<parameter=city>\na\nb < c\n</parameter>\n"
        "</function>\n</tool_call>",
        "<tool_call>\n<function=get_weather>\n<parameter=in_file>\n2",
    ),
    "mistral_json": (
        '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}]',
        '[TOOL_CALLS] [{"arguments": {"days": 2, "city": "Oslo"}, "name": "get_weather"}]',
        '[TOOL_CALLS][{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "mistral_args": (
        '[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo", "days": 2}',
        '[TOOL_CALLS]get_weather[ARGS]{"days": 2, "city": "Oslo"}',
        '[TOOL_CALLS]get_weather[ARGS]{"in_file": 2',
    ),
    "deepseek_v3": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
        '{"city":"Oslo","days":2}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
        '{"days":2,"city":"Oslo"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"in_file":2',
    ),
    "deepseek_v31": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city":"Oslo","days":2}<｜tool▁call▁end｜>'
        "<｜tool▁calls▁end｜>",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"days":2,"city":"Oslo"}<｜tool▁call▁end｜>'
        "<｜tool▁calls▁end｜>",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"in_file":2',
    ),
    "deepseek_dsml": (
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n'
        '<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n'
        '<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
        "</｜DSML｜tool_calls>",
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="days" string="true">',
    ),
    "kimi_k2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        '{"city":"Oslo","days":2}<|tool_call_end|><|tool_calls_section_end|>',
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:7<|tool_call_argument_begin|>"
        '{"days":2,"city":"Oslo"}<|tool_call_end|><|tool_calls_section_end|>',
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        '{"in_file":2',
    ),
    "kimi_k3": (
        '<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|>'
        '<|open|>argument key="city" type="string"<|sep|>Oslo<|close|>argument<|sep|>'
        '<|open|>argument key="days" type="number"<|sep|>2<|close|>argument<|sep|><|close|>call<|sep|>'
        "<|close|>tools<|sep|>",
        '<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|>'
        '<|open|>argument key="days" type="number"<|sep|>2<|close|>argument<|sep|>'
        '<|open|>argument key="city" type="string"<|sep|>a<b<|close|>argument<|sep|><|close|>call'
        "<|sep|><|close|>tools<|sep|>",
        '<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="in_file"',
    ),
    "glm45": (
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n"
        "<arg_value>2</arg_value>\n</tool_call>",
        "<tool_call>get_weather\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n<arg_key>city</arg_key>\n"
        "<arg_value>Oslo</arg_value>\n</tool_call>",
        "<tool_call>get_weather\n<arg_key>in_file</arg_key>",
    ),
    "llama3_json": (
        '{"name": "get_weather", "parameters": {"city": "Oslo", "days": 2}}',
        '{"parameters": {"days": 2, "city": "Oslo"}, "name": "get_weather"}',
        '{"name": "get_weather", "parameters": {"in_file": 2',
    ),
    "llama_python_tag": (
        '<|python_tag|>get_weather.call(city="Oslo", days=2)',
        '<|python_tag|>{"type": "function", "parameters": {"days": 2, "city": "Oslo"}, "name": "get_weather"}',
        "<|python_tag|>get_weather.call(in_file=2",
    ),
    "pythonic": (
        '[get_weather(city="Oslo", days=2)]',
        "[get_weather(days=2, city='Os\\'lo')]",
        "[get_weather(in_file=2",
    ),
    "lfm2": (
        '<|tool_call_start|>[get_weather(city="Oslo", days=2)]<|tool_call_end|>',
        '<|tool_call_start|>[get_weather(days=2, city="Oslo")]<|tool_call_end|>',
        "<|tool_call_start|>[get_weather(in_file=2",
    ),
    "olmo3": (
        '<function_calls>get_weather(city="Oslo", days=2)</function_calls>',
        '<function_calls>get_weather(days=2, city="Oslo")</function_calls>',
        "<function_calls>get_weather(in_file=2",
    ),
    "harmony": (
        '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Oslo","days":2}<|call|>',
        "<|channel|>analysis<|message|>Need it.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather"
        '<|constrain|>json<|message|>{"days":2,"city":"Oslo"}<|call|>',
        '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"in_file":2',
    ),
    "minimax_m2": (
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n'
        '<parameter name="days">2</parameter>\n</invoke>\n</minimax:tool_call>',
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="days">2</parameter>\n'
        '<parameter name="city">Oslo</parameter>\n</invoke>\n</minimax:tool_call>',
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="in_file">',
    ),
    "gemma4": (
        '<|tool_call>call:get_weather{city:<|"|>Os"lo<|"|>,days:2}<tool_call|>',
        '<|tool_call>call:get_weather{days:2,city:<|"|>Oslo<|"|>,units:<|"|>metric<|"|>}<tool_call|>',
        "<|tool_call>call:get_weather{in_file:2",
    ),
    "functiongemma": (
        "<start_function_call>call:get_weather{city:<escape>Oslo<escape>,days:2}<end_function_call>",
        "<start_function_call>call:get_weather{days:2,city:<escape>Oslo<escape>}<end_function_call>",
        "<start_function_call>call:get_weather{in_file:2",
    ),
    "granite": (
        '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}]',
        '<|tool_call|>[{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}]',
        '<|tool_call|>[{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "granite_20b": (
        '<function_call> {"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}',
        '<function_call>{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}',
        '<function_call> {"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "phi4_mini": (
        'functools[{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}]',
        'functools[{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}]',
        'functools[{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "cohere_cmd3": (
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Oslo", "days": 2}}]'
        "<|END_ACTION|>",
        '<|START_ACTION|>[{"tool_name": "get_weather", "parameters": {"days": 2, "city": "Oslo"}, "tool_call_id": "1"}]'
        "<|END_ACTION|>",
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"in_file": 2',
    ),
    "xlam": (
        '[{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}]',
        '[{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}]',
        '[{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "hunyuan_a13b": (
        '<tool_calls>[{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}]</tool_calls>',
        '<tool_calls>[{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}]</tool_calls>',
        '<tool_calls>[{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "nemotron_nano_v2": (
        '<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}]</TOOLCALL>',
        '<TOOLCALL>[{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}]</TOOLCALL>',
        '<TOOLCALL>[{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "jamba": (
        '<tool_calls>[{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}]</tool_calls>',
        '<tool_calls>[{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}]</tool_calls>',
        '<tool_calls>[{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "longcat": (
        '<longcat_tool_call>{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}</longcat_tool_call>',
        '<longcat_tool_call>{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}</longcat_tool_call>',
        '<longcat_tool_call>{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "ernie45": (
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}</tool_call>',
        '<tool_call>{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}</tool_call>',
        '<tool_call>{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "internlm2": (
        '<|action_start|><|plugin|>{"name": "get_weather", "parameters": {"city": "Oslo", "days": 2}}<|action_end|>',
        '<|action_start|><|plugin|>{"name": "get_weather", "parameters": {"days": 2, "city": "Oslo"}}<|action_end|>',
        '<|action_start|><|plugin|>{"name": "get_weather", "parameters": {"in_file": 2',
    ),
    "functionary": (
        '>>>get_weather\n{"city": "Oslo", "days": 2}',
        '>>>get_weather\n{"days": 2, "city": "Oslo"}',
        '>>>get_weather\n{"in_file": 2',
    ),
    "seed_oss": (
        "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Oslo</parameter>\n<parameter=days>2</parameter>\n"
        "</function>\n</seed:tool_call>",
        "<seed:tool_call>\n<function=get_weather>\n<parameter=days>2</parameter>\n<parameter=city>Oslo</parameter>\n"
        "</function>\n</seed:tool_call>",
        "<seed:tool_call>\n<function=get_weather>\n<parameter=in_file>",
    ),
    "step3": (
        '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">'
        '<steptml:parameter name="city">Oslo</steptml:parameter><steptml:parameter name="days">2</steptml:parameter>'
        "</steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
        '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">'
        '<steptml:parameter name="days">2</steptml:parameter><steptml:parameter name="city">Oslo</steptml:parameter>'
        "</steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
        '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">'
        '<steptml:parameter name="in_file">',
    ),
    "minicpm5_xml": (
        '<function name="get_weather"><param name="city">Oslo</param><param name="days">2</param></function>',
        '<function name="get_weather"><param name="days">2</param><param name="city">Oslo</param></function>',
        '<function name="get_weather"><param name="in_file">',
    ),
    "json_args": ("{}", "{ }", '{"in_file"'),
    "granite_pythonic": (
        'get_weather(city="Oslo", days=2)',
        "get_weather(days=2, city='Oslo')\nlist_jobs()",
        "get_weather(in_file=2",
    ),
    "gemma3": (
        '[get_weather(city="Oslo", days=2)]',
        "[get_weather(days=2, city='Oslo'), list_jobs()]",
        "[get_weather(in_file=2",
    ),
    "minimax_m1": (
        '<tool_calls>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}\n</tool_calls>',
        '<tool_calls>\n{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}\n'
        '{"name": "list_jobs", "arguments": {}}\n</tool_calls>',
        '<tool_calls>\n{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "minimax_m3": (
        f'{NS}<tool_call>\n{NS}<invoke name="get_weather">\n{NS}<city>Oslo{NS}</city>\n{NS}<days>2{NS}</days>\n'
        f"{NS}</invoke>\n{NS}</tool_call>",
        f'{NS}<tool_call>{NS}<invoke name="get_weather">{NS}<days>2{NS}</days>{NS}<city>a</city>b{NS}</city>'
        f"{NS}</invoke>{NS}</tool_call>",
        f'{NS}<tool_call>\n{NS}<invoke name="get_weather">\n{NS}<in_file>2',
    ),
    "hy_v3": (
        "<tool_calls><tool_call>get_weather<tool_sep><arg_key>city</arg_key><arg_value>Oslo</arg_value>"
        "<arg_key>days</arg_key><arg_value>2</arg_value></tool_call></tool_calls>",
        "<tool_calls><tool_call>get_weather<tool_sep><arg_key>days</arg_key><arg_value>2</arg_value>"
        "<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call><tool_call>list_jobs<tool_sep></tool_call>"
        "</tool_calls>",
        "<tool_calls><tool_call>get_weather<tool_sep><arg_key>in_file</arg_key>",
    ),
    "cline_xml": (
        "<get_weather>\n<city>Oslo</city>\n<days>2</days>\n</get_weather>",
        "<get_weather>\n<days>2</days>\n<city>\na\nb\n</city>\n</get_weather>",
        "<get_weather>\n<in_file>2",
    ),
    "apertus": (
        '<|tools_prefix|>[{"get_weather": {"city": "Oslo", "days": 2}}]<|tools_suffix|>',
        '<|tools_prefix|>[{"get_weather": {"days": 2, "city": "Oslo"}}, {"list_jobs": {}}]<|tools_suffix|>',
        '<|tools_prefix|>[{"get_weather": {"in_file": 2',
    ),
    "glimmer": (
        '<atem:function_calls>\n<atem:invoke name="get_weather">\n<atem:parameter name="city">Oslo</atem:parameter>\n'
        '<atem:parameter name="days">2</atem:parameter>\n</atem:invoke>\n</atem:function_calls>',
        '<atem:function_calls>\n<atem:invoke name="get_weather">\n<atem:parameter name="days">2</atem:parameter>\n'
        '<atem:parameter name="city">Oslo</atem:parameter>\n</atem:invoke>\n</atem:function_calls>',
        '<atem:function_calls>\n<atem:invoke name="get_weather">\n<atem:parameter name="in_file">',
    ),
}
CALLS["nemotron3_xml"] = CALLS["step3p5"] = CALLS["qwen3_coder_xml"]
