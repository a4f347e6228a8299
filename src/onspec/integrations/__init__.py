"""The library way: calls that conform inside the official SDKs and frameworks, without a gateway."""
