"""Figures beside their goals: one table for people, or one JSON object with stable keys."""
import json


class Report:
    def __init__(self):
        self.rows = []

    def add(self, key, what, value, unit, goal=None, incumbent=""):
        """goal: an upper limit in the same unit, or None where there is none."""
        self.rows.append((key, what, value, unit, goal, incumbent))

    def as_json(self):
        return json.dumps({key: round(value, 4) for key, _, value, _, _, _ in self.rows})

    def as_text(self):
        lines = [("WHAT", "MEASURED", "GOAL", "", "INCUMBENT")]
        for _, what, value, unit, goal, incumbent in self.rows:
            verdict = "" if goal is None else "met" if value <= goal else "within twice" if value <= 2 * goal else "MISSED"
            lines.append((what, f"{value:.4g} {unit}", "-" if goal is None else f"<= {goal:g} {unit}", verdict, incumbent))
        widths = [max(len(line[i]) for line in lines) for i in range(5)]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def percentile(values, share):
    """The smallest value that at least `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]
