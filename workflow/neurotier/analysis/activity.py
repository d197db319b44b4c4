"""Activities: what made a participant's derivatives, under an identifier that sidecars and BIDS provenance share.

Only with ``results_dataset``. Nothing here depends on tier, node, time or parallelism, so the same analysis of the same
images gives the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress

from neurotier import __version__
from neurotier.analysis.app import app_name
from neurotier.analysis.tools import make_tool
from neurotier.core.files import Facts, Record, absolute_path
from neurotier.core.places import short_hash
from neurotier.core.settings import Settings

How = Record
"""How derivatives were made: the versions, the options, and the container image with its digest."""


URI = "bids::prov#"
"""How the BIDS URI of an object of the provenance begins, in its own dataset."""

NOT_OPTIONS = ("image", "name", "work_factor")
"""Keys of an app or program that do not say how it was called."""


CHOOSING = ("sessions", "runs")
"""Keys of the dataset, lists, that select which of a participant's files are analysed: if one changes, the dataset is
indexed again. They are recorded for an app; files of a tool are named as inputs."""


def how_of(
    settings: Settings,
    version: str,
    container: str | None,
    made_with: Facts,
    neurotier: str = __version__,
    caches: Mapping[str, str] | None = None,
) -> How:
    """How derivatives are made.

    Parameters
    ----------
    settings
        Of the run.
    version
        Version of the tool or app.
    container
        Digest of the image file, ``sha256:...``; ``None`` on the host.
    made_with
        What the run noted about itself under this name; the files themselves may have changed since.
    neurotier
        Version of neurotier.
    caches
        Digests of the folders that an app read, by name.
    """
    app, containers, is_app = settings.app, settings.containers, settings.is_app
    given = vars(app) if is_app else settings.tool.options
    options = {key: value for key, value in given.items() if key not in NOT_OPTIONS and (is_app or value is not None)}
    how: How = {"neurotier": neurotier, "name": app_name(settings), "version": version, "options": options}
    if not is_app and (content := make_tool(settings.tool).content) in made_with:
        how[content] = made_with[content]
    chosen = {key: list(map(str, getattr(settings.dataset, key))) for key in CHOOSING}
    if is_app and any(chosen.values()):
        how["chosen"] = chosen
    how["sidecars_refer"] = settings.results_dataset and not is_app
    if settings.image:
        how["container"] = {
            "image": settings.image,
            "digest": container,
            "network": containers.network,
            "environment": containers.environment,
            "binds": [str(absolute_path(word)) for word in containers.binds],
        }
        how["app"] = is_app
    if is_app and caches:
        how["caches"] = caches
    if is_app and app.filter_file:
        with suppress(OSError):  # the file is gone: then the app cannot be called the same way again
            how["filter"] = absolute_path(app.filter_file).read_text()
    return how


def identifier(how: How) -> str:
    """The identifier of an activity.

    >>> identifier({"neurotier": "1", "name": "bet", "version": "6.0", "options": {}})
    'bet-d922e843'
    """
    return f"{label_of(how['name'])}-{short_hash(json.dumps(how, sort_keys=True))}"


def label_of(name: str) -> str:
    """A name as part of an identifier.

    >>> label_of("my-app 2"), label_of("?")
    ('myapp2', 'app')
    """
    return re.sub(r"[^A-Za-z0-9]", "", name) or "app"
