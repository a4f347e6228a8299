"""The scripted provider says what it is told, byte for byte, in a form that the official SDKs read."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from onspec.errors import InputError
from onspec.providers.script import Block, Turn, load, parse
from tests.gateway.rig import PATHS, call, request, rig, says, tools

ARGUMENTS = '{"city": "Zürich", "days": 3}'
REPLY = says(
    Block("thinking", "Hm."), Block("text", "Both ☀️."), call("get_weather", ARGUMENTS, 4), call("now", "{}", 0)
)


@pytest.mark.parametrize("stream", [True, False])
def test_the_sdks_read_every_wire(stream: bool) -> None:
    """Text, thinking and calls come out of the official clients as they went in."""
    with rig([REPLY] * 3) as r:
        url = r.provider.url
        claude = anthropic.Anthropic(api_key="k", base_url=url, max_retries=0)
        asked: dict[str, Any] = {
            "model": "m",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "x"}],
            "tools": tools("anthropic"),
        }
        if stream:
            with claude.messages.stream(**asked) as events:
                message = events.get_final_message()
        else:
            message = claude.messages.create(**asked)
        assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
        assert message.content[2].input == json.loads(ARGUMENTS)
        client = openai.OpenAI(api_key="k", base_url=url + "/v1", max_retries=0)
        chat: dict[str, Any] = {
            "model": "m",
            "messages": [{"role": "user", "content": "x"}],
            "tools": tools("chat")[:-1],
        }
        if stream:
            with client.chat.completions.stream(**chat) as chunks:
                choice = chunks.get_final_completion().choices[0]
        else:
            choice = client.chat.completions.create(**chat).choices[0]  # type: ignore[assignment]
        assert choice.message.content == "Both ☀️."
        assert [one.function.arguments for one in choice.message.tool_calls or []] == [ARGUMENTS, "{}"]
        if stream:
            with client.responses.stream(model="m", input="x", tools=tools("responses")) as steps:  # type: ignore[arg-type]
                response: Any = steps.get_final_response()
        else:
            response = client.responses.create(model="m", input="x", tools=tools("responses"))  # type: ignore[arg-type]
        assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "function_call"]
        assert response.output[2].arguments == ARGUMENTS


@pytest.mark.parametrize("api", PATHS)
def test_raw_bytes_and_faults(api: str) -> None:
    """Exact bytes in exact pieces, comments first, an error status with its headers, a cut, a reset."""
    turns = [
        Turn(raw=b"event: x\ndata: \xff\n\nhalf", chunk_bytes=3),
        says(Block("text", "hi"), keepalives=3),
        Turn(status=529, error={"e": 1}, headers={"retry-after": "3"}),
        says(Block("text", "hi"), cut_after_events=2),
        says(Block("text", "hi"), cut_after_bytes=10, reset=True),
    ]
    with rig(turns) as r:
        url = r.provider.url + PATHS[api]
        assert httpx2.post(url, json=request(api)).content == b"event: x\ndata: \xff\n\nhalf"
        assert httpx2.post(url, json=request(api)).content.startswith(
            b": keepalive 0\n\n: keepalive 1\n\n: keepalive 2\n\n"
        )
        answer = httpx2.post(url, json=request(api))
        assert (answer.status_code, answer.json(), answer.headers["retry-after"]) == (529, {"e": 1}, "3")
        for _ in range(2):
            with pytest.raises(httpx2.HTTPError):
                httpx2.post(url, json=request(api))


def test_turns_are_for_requests_with_tools() -> None:
    """A title or a summary takes no turn; when the turns are used up there is a last word."""
    script = parse({"turns": [{"blocks": [{"type": "text", "text": "one"}]}], "side_text": "side", "tail_text": "tail"})
    with rig(script) as r:
        url = r.provider.url + PATHS["chat"]
        asked = request("chat", False)
        said = [
            httpx2.post(url, json={**asked, "tools": given}).json()["choices"][0]["message"]["content"]
            for given in ([], asked["tools"], asked["tools"])
        ]
        assert said == ["side", "one", "tail"]
        assert [seen.turn for seen in r.provider.requests] == [None, 0, 1]


def test_scripts_are_read_strictly(tmp_path: Path) -> None:
    """Variables are filled in, other words for text are known, and a mistake is told."""
    file = tmp_path / "s.json"
    (tmp_path / "raw.sse").write_bytes(b"data: 1\n\n")
    file.write_text(
        json.dumps(
            {
                "turns": [
                    {"blocks": [{"type": "tool", "name": "t", "args": {"p": "{{CWD}}/a"}}]},
                    {"raw_file": "raw.sse"},
                ]
            }
        )
    )
    script = load(file, {"CWD": "/x"})
    assert script.turns[0].blocks[0].text == '{"p": "/x/a"}'
    assert script.turns[1].raw == b"data: 1\n\n"
    for text in ("[]", "{", '{"turns": [5]}', '{"turns": [{"odd": 1}]}', '{"turns": [{"blocks": [{"type": "odd"}]}]}'):
        file.write_text(text)
        with pytest.raises(InputError):
            load(file)


def test_the_command(tmp_path: Path) -> None:
    """`onspec serve --script` plays a file and keeps a log of requests without keys."""
    (tmp_path / "s.json").write_text(
        json.dumps({"turns": [{"blocks": [{"type": "text", "text": "{{WHO}}"}]}], "advance": "any"})
    )
    command = [
        sys.executable,
        "-m",
        "onspec",
        "serve",
        "--script",
        str(tmp_path / "s.json"),
        "--log",
        str(tmp_path / "log"),
        "--var",
        "WHO=me",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        answer = httpx2.post(url + PATHS["chat"], json=request("chat", False), headers={"authorization": "Bearer KEY"})
        assert answer.json()["choices"][0]["message"]["content"] == "me"
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    line = json.loads((tmp_path / "log").read_text())
    assert (line["path"], line["turn"]) == (PATHS["chat"], 0)
    assert "KEY" not in json.dumps(line)
    bad = subprocess.run([*command[:-1], "nonsense"], capture_output=True, text=True, timeout=30, check=False)
    assert (bad.returncode, bad.stderr.count("\n")) == (2, 1)
