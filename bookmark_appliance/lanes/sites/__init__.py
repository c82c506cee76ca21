"""One module a Site, each with its `SITE`; the registry is what stands in this folder (SITE-042)."""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from bookmark_appliance.lanes.site import Site


def _discover() -> dict[str, Site]:
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    sites: list[Site] = [module.SITE for module in modules]
    return {site.name: site for site in sorted(sites, key=lambda site: site.name)}


SITES: Mapping[str, Site] = MappingProxyType(_discover())
"""The Sites by name, in name order (LANE-001)."""
