"""The webhook of a night: where its address comes from, what it is told, and what is said when it fails."""

import argparse
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from specbench.cli.nightly import WEBHOOK_VARIABLE

if TYPE_CHECKING:
    from specbench.nights import Night
    from specbench.suite.secrets import Secrets

Tell = Callable[[str, "Night", "Secrets"], None]


def telling(args: argparse.Namespace) -> Tell:
    """Takes the address out of the environment: no server inherits it. Raises SpecbenchError for one that is none."""
    from specbench.execution.webhook import Webhook

    from_environment = os.environ.pop(WEBHOOK_VARIABLE, "")
    url = args.webhook or from_environment
    if not url:
        return lambda suite_name, night, secrets: None
    webhook = Webhook(url)

    def tell(suite_name: str, night: "Night", secrets: "Secrets") -> None:
        from specbench.render.nightly.message import message, shape_for

        if args.webhook_trouble and night.exit_code == 0:
            return
        shape = shape_for(webhook.host) if args.webhook_shape == "auto" else args.webhook_shape
        trouble = webhook.tell(secrets.clean(message(shape, suite_name, night)))
        if trouble is not None:
            print(f"specbench: {trouble}; the night's answer stands", file=sys.stderr)

    return tell
