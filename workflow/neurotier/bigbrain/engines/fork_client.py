"""What GNU parallel starts for each block: ``python3 -I -S fork_client.py ADDRESS BLOCK``.

It has the fork server at that address increment the block, and ends as the block's process does. A failure is one line
on the terminal. Thousands of these are started, so nothing is imported that is not needed: ``socket`` and what Python
looks for at its start (``site``) would take longer than all the rest.
"""

import sys
from _socket import AF_UNIX, SOCK_STREAM, socket

INTERRUPTED, KILLED = 130, 137
"""Exit codes of a shell for SIGINT and SIGKILL."""

FIX = "see fork_server.log, beside the log of the block"


def main(arguments: list[str]) -> int:
    """Run the command line; the exit code of the process."""
    address, block = arguments
    said = b""
    try:
        connection = socket(AF_UNIX, SOCK_STREAM)
        connection.connect(f"\0{address}")
        connection.sendall(f"{block}\n".encode(errors="surrogateescape"))
        while part := connection.recv(65536):
            said += part
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError:
        said = b""
    exit_code, _, line = said.decode(errors="surrogateescape").partition(" ")
    if not line:
        exit_code, line = str(KILLED), f"neurotier: block {block}: its process was killed, or failed; {FIX}"
    if exit_code != "0":
        print(line, file=sys.stderr)
    return int(exit_code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
