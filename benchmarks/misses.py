"""Why a figure is missed, by hand, by the id of its row: printed only where the row is really missed."""

MISSES: dict[str, str] = {}
