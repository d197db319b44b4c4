"""Credentials: an address may hold a user name and a token, which git needs, and which nothing that is kept may hold.

Results, logs and pages are handed on. Only ``state/source``, from which jobs clone, git's own configuration of the
clone, and the configurations of inner runs have them, and these are for their user alone.
"""

from __future__ import annotations

import re
from typing import Any

OWNER = re.compile(r"(\bhttps?://)[^\s/?#\"<>]*@", re.IGNORECASE)
"""User name and password of an address by HTTP, anywhere in a text; the last ``@`` before the path ends them."""

PASSWORD = re.compile(r"(\bssh://[^\s/?#\"<>:@]*):[^\s/?#\"<>]*@", re.IGNORECASE)
"""The password of an address by SSH, whose user name is part of the address."""


def without_credentials(text: str) -> str:
    """A text without user names and passwords in the addresses that it has.

    >>> without_credentials("https://me:secret@x.org:8080/a"), without_credentials("ssh://me@x.org/a")
    ('https://x.org:8080/a', 'ssh://me@x.org/a')
    >>> without_credentials("cannot clone ria+http://TOKEN@x.org/a, ask a@x.org")
    'cannot clone ria+http://x.org/a, ask a@x.org'
    """
    return PASSWORD.sub(r"\1@", OWNER.sub(r"\1", text)) if "://" in text else text


def all_without_credentials(value: Any) -> Any:
    """Values of a configuration, such as a JSON file holds, with every text :func:`without_credentials`.

    >>> all_without_credentials({"source": "https://me:secret@x.org/a", "sites": ["A"], "attempts": 3})
    {'source': 'https://x.org/a', 'sites': ['A'], 'attempts': 3}
    """
    if isinstance(value, str):
        return without_credentials(value)
    if isinstance(value, dict):
        return {key: all_without_credentials(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [all_without_credentials(each) for each in value]
    return value
