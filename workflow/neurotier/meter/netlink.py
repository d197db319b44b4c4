"""Generic netlink: requests with one attribute, their answers, and the messages that the kernel sends on its own.

The sockets are those of ``_socket``, on which ``socket`` stands: importing that costs 4 ms more, a sixth of what
``neurotier meter`` takes to start.

Written here because the netlink library on the package index takes 0.12 s to import, three times what
``neurotier meter`` may cost, and supports neither listening for exits nor the current layout of the records.
Source: ``netlink(7)`` and Linux ``Documentation/userspace-api/netlink/intro.rst``.
"""

from __future__ import annotations

import _socket
import os
import struct
import sys

NETLINK_GENERIC, GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 16, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 1, 2
NLM_F_REQUEST, NLM_F_ACK, NLMSG_ERROR = 1, 4, 2
HEADER = struct.Struct("=IHHIIBBH")
ATTRIBUTE = struct.Struct("=HH")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def generic_socket() -> _socket.socket:
    """A socket for generic netlink, bound."""
    sock = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW, NETLINK_GENERIC)
    sock.bind((0, 0))
    return sock


def find_family(sock: _socket.socket, name: bytes) -> int:
    """The number of a family of messages; :class:`OSError` if the kernel does not have it."""
    reply = request(sock, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, name + b"\0")
    return int.from_bytes(dict(attributes(reply))[CTRL_ATTR_FAMILY_ID], sys.byteorder)


def send(sock: _socket.socket, family: int, command: int, kind: int, value: bytes) -> None:
    """Send a generic-netlink request with one attribute."""
    length = ATTRIBUTE.size + len(value)
    attribute = ATTRIBUTE.pack(length, kind) + value + bytes(-length % 4)
    header = HEADER.pack(HEADER.size + len(attribute), family, NLM_F_REQUEST | NLM_F_ACK, 0, 0, command, 1, 0)
    sock.send(header + attribute)


def request(sock: _socket.socket, family: int, command: int, kind: int, value: bytes) -> bytes:
    """Send a request and wait for its acknowledgement; the answer that came before that, empty if none did."""
    send(sock, family, command, kind, value)
    answer = b""
    while True:
        message = sock.recv(65536)
        if int.from_bytes(message[4:6], sys.byteorder) != NLMSG_ERROR:
            answer = message
            continue
        code = int.from_bytes(message[16:20], sys.byteorder, signed=True)
        if code:
            raise OSError(-code, os.strerror(-code))
        return answer


def attributes(data: bytes, offset: int = HEADER.size) -> Iterator[tuple[int, bytes]]:
    """The attributes of a message from an offset on: kind and value."""
    while offset + ATTRIBUTE.size <= len(data):
        length, kind = ATTRIBUTE.unpack_from(data, offset)
        if length < ATTRIBUTE.size:
            return
        yield kind & 0x3FFF, data[offset + ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3
