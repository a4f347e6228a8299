"""The official `anthropic` SDK with tool calls that conform."""

from __future__ import annotations

from typing import Any, TypeVar

from onspec.errors import MissingExtra

try:
    import anthropic
except ImportError as error:
    raise MissingExtra("anthropic", "integrations") from error

from onspec.integrations.httpx2_transport import AsyncThrough, AsyncTransport, Mending, Through, Transport

Client = TypeVar("Client", anthropic.Anthropic, anthropic.AsyncAnthropic)


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
    if not isinstance(client, anthropic.Anthropic | anthropic.AsyncAnthropic):
        raise TypeError(f"the client is one of the anthropic SDK, not {type(client).__name__}")
    mending = Mending(**options)
    if isinstance(client, anthropic.AsyncAnthropic):
        transport = AsyncTransport(AsyncThrough(client._client), mending)
        return client.with_options(http_client=anthropic.DefaultAsyncHttpxClient(transport=transport))
    return client.with_options(
        http_client=anthropic.DefaultHttpxClient(transport=Transport(Through(client._client), mending))
    )
