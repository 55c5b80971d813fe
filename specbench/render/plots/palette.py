"""Colours, for light and for dark paper. Okabe and Ito's hues, darkened where they are too faint on white.

A plot is drawn in the light colours; a page maps each of them to its dark twin.
"""

from typing import Final

INK: Final = "#1b1d21"
MUTED: Final = "#5c636d"
GRID: Final = "#dfe2e7"
PAPER: Final = "#ffffff"
GAIN: Final = "#e3f3ec"
"""Ground of the part of a diagram where speculation pays."""
ALARM: Final = "#b3261e"

SERIES: Final = ("#0072b2", "#c24e00", "#00795a", "#a3457f", "#8a6100", "#3d6fd6", "#6d4bb0")
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
DASHES: Final = ("-", "--", ":", "-.")

HEAT: Final = ("#f3f6fa", "#cfe0ef", "#9dc3e0", "#4f93c4", "#145a92")
"""Low to high; the same on light and dark paper."""
HEAT_INK: Final = ("#101214", "#101214", "#101214", "#101213", "#fdfdfe")

PHASES: Final = ("#a9b0ba", "#c9ced6")
"""Start-up, step by step."""

DARK: Final = {
    INK: "#eceef1",
    MUTED: "#a3abb6",
    GRID: "#383d45",
    PAPER: "#17191d",
    GAIN: "#183329",
    ALARM: "#ff8a80",
    SERIES[0]: "#56b4e9",
    SERIES[1]: "#ff9a57",
    SERIES[2]: "#3fce9f",
    SERIES[3]: "#e79fcb",
    SERIES[4]: "#e6b84a",
    SERIES[5]: "#9db8ff",
    SERIES[6]: "#c6aefc",
    PHASES[0]: "#5d646e",
    PHASES[1]: "#4a515b",
}
