"""Plays one scheme against the broker at DUEPOST_E2E_URL.

Exits with 0 if the broker kept its word. Without arguments it lists the schemes.
"""

import sys

import delayed
import routing
import settling
import ttl
from stage import Stage

SCHEMES = {
    "confirms": settling.confirms,
    "delayed-exchange": delayed.exchange,
    "delayed-retry": settling.delayed_retry,
    "delayed-types": delayed.types,
    "head-of-line": ttl.head_of_line,
    "manual-ack": settling.manual_ack,
    "order-close": ttl.order_close,
    "queue-ttl": ttl.queue_ttl,
    "rejects": settling.rejects,
    "returns": settling.returns,
    "routing": routing.routing,
    "staircase": delayed.staircase,
    "tiers": ttl.tiers,
}


def main(arguments):
    if not arguments:
        print("\n".join(SCHEMES))
        return 0
    name = arguments[0]
    if name not in SCHEMES:
        print(f"no scheme named {name}", file=sys.stderr)
        return 2
    with Stage(name) as stage:
        SCHEMES[name](stage)
        print(f"played {name}: {stage.checks} checks")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
