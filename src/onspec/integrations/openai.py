"""The official `openai` SDK with tool calls that conform."""

from __future__ import annotations

from typing import Any, TypeVar

from onspec.errors import MissingExtra

try:
    import openai
except ImportError as error:
    raise MissingExtra("openai", "integrations") from error

from onspec.integrations.httpx2_transport import AsyncThrough, AsyncTransport, Mending, Through, Transport

Client = TypeVar("Client", openai.OpenAI, openai.AsyncOpenAI)


def checked(client: Client, **options: Any) -> Client:
    """A copy of a client whose replies are mended before the SDK reads them, streamed or not.

    The contracts are the `tools` of each request. A call that cannot be mended is asked for again, where `retries` says
    so, and otherwise reaches the program as the model wrote it; one that was cut off without the reply saying so ends a
    stream with an error.

    Args:
        client: A client; it stays as it is, and its connections, proxies and certificates are used.
        options: Keyword arguments of `Mending`: `policy`, `hold`, `on_call`, `aliases`, `retries`, `tokens`.

    Raises:
        InputError: An option is out of its range.
        TypeError: It is no such client.
    """
    if not isinstance(client, openai.OpenAI | openai.AsyncOpenAI):
        raise TypeError(f"the client is one of the openai SDK, not {type(client).__name__}")
    mending = Mending(**options)
    if isinstance(client, openai.AsyncOpenAI):
        transport = AsyncTransport(AsyncThrough(client._client), mending)
        return client.with_options(http_client=openai.DefaultAsyncHttpxClient(transport=transport))
    return client.with_options(
        http_client=openai.DefaultHttpxClient(transport=Transport(Through(client._client), mending))
    )
