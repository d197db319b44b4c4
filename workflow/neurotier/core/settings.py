"""Settings: the configuration, checked and complete, with types.

The dataclasses mirror the sections of ``workflow/schemas/config.schema.yaml`` (a test keeps them in step), so that the
rest of the library uses attributes instead of dictionary keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, TypedDict, cast, dataclass_transform, get_args, get_origin, get_type_hints

from neurotier.core.configuration import WORKLOADS, check, config_schema, with_defaults
from neurotier.core.errors import SettingsError
from neurotier.core.files import Facts, Record
from neurotier.core.kinds import KINDS, Kind

Say = Callable[[str], None]
"""Prints a line for the user, one per step."""

ROLES = ("dataset", "work", "images", "results")
"""Roles that a placement assigns to tiers."""


@dataclass_transform(frozen_default=True)
class Section:
    """A section of the configuration: subclasses are frozen dataclasses of its keys."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class CacheSettings(TypedDict):
    """One entry of ``app.caches``: a folder that apps read, such as TemplateFlow's."""

    source: str
    inside: str
    variable: str | None


class AppSettings(Section):
    """Section ``app``: a BIDS App to run instead of a tool."""

    image: str | None
    name: str | None
    level: str
    suffixes: list[str]
    arguments: list[str]
    label_option: str
    session_option: str | None
    work_option: str | None
    filter_file: str | None
    group: bool
    group_arguments: list[str]
    threads: int
    memory_mb: int
    work_factor: float
    work_files: int | None
    caches: dict[str, CacheSettings]
    retry_exit_codes: list[int]
    attempts: int


class ProgramSettings(Section):
    """An entry of section ``tool`` that has a command: a program that extracts the brain of one image."""

    command: str
    mask: str | None
    brain: str | None
    version: str | None
    environment: dict[str, str]
    threads: int
    memory_mb: int
    work_factor: float


class DatasetSettings(Section):
    """Section ``dataset``: what to analyse."""

    source: str
    version: str | None
    sites: list[str]
    participants: list[str]
    sessions: list[str]
    runs: list[str | int]
    concurrent_gets: int
    get_attempts: int
    get_backoff_s: float
    drop: bool
    validation: str
    links_to: list[str]
    ahead: str | int | None = None


class DemoSettings(Section):
    """Section ``demo``: the demonstration dataset."""

    head: str
    voxel_size_mm: float
    seed: int


class ToolSettings(Section):
    """Section ``tool``: the tool's name, its container image, and the options of that tool alone."""

    name: str
    image: str | None
    options: Record


class ContainerSettings(Section):
    """Section ``containers``: how containers are run."""

    form: str
    network: bool
    environment: dict[str, str]
    binds: list[str]
    build_arguments: dict[str, str]


class TierSettings(Section):
    """One entry of section ``tiers``."""

    name: str
    path: str
    kind: str
    capacity: str | int | None
    node: bool = False
    read_only: bool = False


class ShareSettings(Section):
    """Section ``shares``: which participants share a cluster job, and how many more are staged while others compute."""

    participants: int | None
    at_once: int | None
    minutes_per_participant: int
    staging_beside: int = 0


class ValiditySettings(Section):
    """Section ``validity``: conditions that a run must meet for its times to count."""

    others_cpu_share: float


class ReportSettings(Section):
    """Section ``report``: how much the run report shows."""

    mosaics: int


class CampaignSettings(Section):
    """Section ``campaign``: conditions to run; a placement maps roles to tiers, or to ``None`` for the usual tier."""

    placements: dict[str, dict[str, str | None]]
    parallelism: list[int]
    cache: list[str]
    tools: list[str]
    repetitions: int
    seed: int
    compare_outputs: bool
    repeat_invalid: bool


class ComparisonSettings(Section):
    """Section ``comparison``: what else is compared."""

    results: list[str]


class ProbeSettings(Section):
    """Section ``probe``: how tiers are measured."""

    tiers: list[str]
    streams: int | None
    file_mib: int
    share: float
    time_s: float
    repetitions: int


class SweepSetSettings(Section):
    """One entry of ``sweep.sets``: a grid of points."""

    block_sizes: list[str | int]
    processes: list[int]
    patterns: list[str]
    queue_depths: list[int]
    file_size: str | int
    seconds: float
    repetitions: int
    direct: bool
    engine: str


class WorkloadSettings(Section):
    """Keys that the sections of all storage workloads have."""

    tiers: list[str]
    share: float
    seed: int


class SweepSettings(WorkloadSettings):
    """Section ``sweep``: storage sweeps with fio."""

    sets: dict[str, SweepSetSettings]


class DaqSettings(WorkloadSettings):
    """Section ``daq``: writers at a fixed rate, and the buffer that they need."""

    together: list[list[str]]
    writers: list[int]
    rate: str | int
    record_bytes: int
    seconds: float
    target_s: float
    engines: list[str]
    flush_s: float
    tolerance: float
    repetitions: int


class IorSettings(WorkloadSettings):
    """Section ``ior``: one file per process, written, then read back by another process."""

    engine: str
    nodes: list[int]
    concurrent: list[int]
    processes: list[int]
    file_size: str | int
    block_size: str | int
    direct: bool
    numa: list[str]
    repetitions: int


class StagingSetSettings(Section):
    """One entry of ``staging.sets``: a grid of exchanges."""

    writers: list[int]
    readers: list[int]
    servers: list[int]
    bytes: str | int
    per: str
    repetitions: int


class StagingSettings(WorkloadSettings):
    """Section ``staging``: writers that pass data to readers."""

    engines: list[str]
    sets: dict[str, StagingSetSettings]
    steps: int
    scale: float
    flush: bool
    timeout_s: float


class AdviceSettings(Section):
    """Section ``advice``: how a run is predicted."""

    participants: int
    calibration: str | None


class BigBrainSettings(Section):
    """Section ``bigbrain``: the BigBrain incrementation."""

    source: str
    resolution_um: int
    count: int | None
    scale: float
    seed: int
    split: list[int]
    engines: list[str]
    spark_master: str
    spark_options: dict[str, str]
    tiers: list[str]
    parallelism: list[int]
    repetitions: int
    iterations: int
    delay_s: float
    pairing: str
    fsync: bool
    cache: str
    numa: str
    keep: str
    predict: bool


class Settings(Section):
    """The whole configuration, valid and complete, and whether Snakemake was started with containers switched on."""

    dataset: DatasetSettings
    demo: DemoSettings
    tool: ToolSettings
    app: AppSettings
    containers: ContainerSettings
    tiers: dict[str, TierSettings]
    placement: dict[str, str]
    results: str
    results_dataset: bool
    node_class: str | None
    shares: ShareSettings
    validity: ValiditySettings
    report: ReportSettings
    campaign: CampaignSettings
    comparison: ComparisonSettings
    bigbrain: BigBrainSettings
    published: str | None
    probe: ProbeSettings
    sweep: SweepSettings
    daq: DaqSettings
    ior: IorSettings
    staging: StagingSettings
    advice: AdviceSettings
    in_containers: bool = False

    @property
    def image(self) -> str | None:
        """The container image in use; ``None`` on the host."""
        return (self.app.image or self.tool.image) if self.in_containers else None

    @property
    def is_app(self) -> bool:
        """Whether a BIDS App is run instead of a tool."""
        return self.app.image is not None

    def kind_of(self, role: str) -> Kind:
        """The kind of the tier that holds a role."""
        return KINDS[self.tiers[self.placement[role]].kind]

    @property
    def placed_tiers(self) -> list[str]:
        """Names of the tiers that hold a role, in the run or in the campaign, in the order of their declaration."""
        used = set(self.placement.values()).union(*(each.values() for each in self.campaign.placements.values()))
        return [name for name in self.tiers if name in used]

    @property
    def tiers_in_use(self) -> list[str]:
        """The placed tiers, and those that are to be probed or that BigBrain or a storage workload names."""
        named = (getattr(self, workload).tiers for workload in WORKLOADS)
        used = {*self.placed_tiers, *self.probe.tiers, *self.bigbrain.tiers}.union(*named)
        return [name for name in self.tiers if name in used]

    @property
    def is_campaign(self) -> bool:
        """Whether a campaign is configured: it replaces the single run."""
        return bool(self.campaign.placements)

    @classmethod
    def from_config(cls, config: Facts, in_containers: bool = False) -> Settings:
        """Check a configuration and give it types.

        Raises
        ------
        SettingsError
            With the path of the key and the reason, if the configuration is not valid.

        Examples
        --------
        >>> tiers = {"disk": {"path": ".", "kind": "block"}}
        >>> placement = {"dataset": "disk", "work": "disk", "images": "disk", "results": "disk"}
        >>> Settings.from_config({"tiers": tiers, "placement": placement}).tool.name
        'brainextractor'
        >>> Settings.from_config({"tiers": tiers, "placement": {**placement, "work": "dsik"}})
        Traceback (most recent call last):
        ...
        neurotier.core.errors.SettingsError: ...
        """
        complete = with_defaults(config, config_schema())
        check(complete)
        if complete["app"]["image"] and not in_containers:
            raise SettingsError("a BIDS App runs in a container", "config key app.image", "add --sdm apptainer")
        name, tiers = complete["tool"]["name"], complete["tiers"]
        options = dict(complete["tool"][name])
        tool = {"name": name, "image": options.pop("image"), "options": options}
        named = {name: {"name": name, **tier} for name, tier in tiers.items()}
        return cls.from_json({**complete, "tool": tool, "tiers": named, "in_containers": in_containers})

    @classmethod
    def from_json(cls, data: Facts) -> Settings:
        """Rebuild settings from the values of :meth:`to_json`."""
        settings: Settings = typed(cls, data)
        return settings

    def to_json(self) -> Record:
        """The settings as plain values."""
        return asdict(self)


def typed(kind: Any, value: Any) -> Any:
    """A value of :meth:`Settings.to_json` converted to its type, sections and their named entries included.

    >>> typed(ReportSettings, {"mosaics": 3}), typed(dict[str, ReportSettings], {"a": {"mosaics": 3}})
    (ReportSettings(mosaics=3), {'a': ReportSettings(mosaics=3)})
    """
    if is_dataclass(kind):
        kinds = get_type_hints(kind)
        return cast(Any, kind)(**{name: typed(kinds[name], each) for name, each in value.items()})
    if get_origin(kind) is dict:
        return {name: typed(get_args(kind)[1], each) for name, each in value.items()}
    return value
