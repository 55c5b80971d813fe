"""Whether the hub can be asked at all: its library retries for half a minute where there is no network."""

import importlib
import logging
import os
import socket
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

OFFLINE: Final = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
ENDPOINT: Final = "https://huggingface.co"
CONNECT_S: Final = 1.5
ANSWER_S: Final = "5"


def library() -> Any:
    """huggingface_hub, its own limits and warnings kept short. Raises ImportError."""
    os.environ.setdefault("HF_HUB_ETAG_TIMEOUT", ANSWER_S)
    os.environ.setdefault("HF_HUB_DOWNLOAD_TIMEOUT", ANSWER_S)
    hub: Any = importlib.import_module("huggingface_hub")
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    return hub


def offline_reason() -> str | None:
    """Why only the cache can be asked; None when the hub can be."""
    stated = next((one for one in OFFLINE if os.environ.get(one, "").lower() in ("1", "true", "yes", "on")), None)
    if stated:
        return f"offline ({stated})"
    return _unreachable(os.environ.get("HF_ENDPOINT") or ENDPOINT, _proxied())


def _proxied() -> bool:
    return any(os.environ.get(name) for one in ("https_proxy", "all_proxy", "http_proxy") for name in (one, one.upper()))


@cache
def _unreachable(endpoint: str, proxied: bool) -> str | None:
    """Asked once a process. Behind a proxy only the library can tell."""
    parts = urlsplit(endpoint)
    if proxied or not parts.hostname:
        return None
    try:
        port = parts.port or (80 if parts.scheme == "http" else 443)
        with socket.create_connection((parts.hostname, port), timeout=CONNECT_S):
            return None
    except (OSError, ValueError) as error:
        return f"{parts.hostname} can't be reached ({getattr(error, 'strerror', None) or error})"
