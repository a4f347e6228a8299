"""The official `openai` SDK with tool calls that conform."""

from __future__ import annotations

from typing import Any, TypeVar

from onspec.errors import MissingExtra
from onspec.integrations.httpx2_transport import AsyncTransport, Mending, Transport

try:
    import openai
except ImportError as error:
    raise MissingExtra("openai", "integrations") from error

Client = TypeVar("Client", openai.OpenAI, openai.AsyncOpenAI)


def checked(client: Client, **options: Any) -> Client:
    """A copy of a client whose replies are mended before the SDK reads them, streamed or not.

    The contracts are the `tools` of each request. A call that cannot be mended reaches the program as the model wrote
    it; one that was cut off without the reply saying so ends a stream with an error.

    Args:
        client: A client; it stays as it is.
        options: Keyword arguments of `Mending`: `policy`, `hold`, `on_call`, `aliases`.
    """
    mending = Mending(**options)
    if isinstance(client, openai.AsyncOpenAI):
        return client.with_options(http_client=openai.DefaultAsyncHttpxClient(transport=AsyncTransport(None, mending)))
    return client.with_options(http_client=openai.DefaultHttpxClient(transport=Transport(None, mending)))
