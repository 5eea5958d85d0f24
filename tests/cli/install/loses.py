"""An application that takes a lock, has it renewed, and says when it has lost it.

    loses.py URL NAME

Prints "held", and "lost" once the lease is over before it was released.  Exit
status: 0 lost, 1 anything else.
"""

import sys

import sqlock

registry = sqlock.open(sys.argv[1])
try:
    with registry.lock(sys.argv[2], wait=0, ttl=2) as lease:
        print("held", flush=True)
        if not lease.lost.wait(60) or lease.held:
            sys.exit(1)
        print("lost")
    sys.exit(1)
except sqlock.LockLost:
    registry.close()
