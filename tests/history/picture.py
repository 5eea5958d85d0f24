#!/usr/bin/python3 -IS
"""picture.py - draw a history: who believed to have which lock, and what failed

    picture.py FILE >SVG

A lock has a row, and in it each who had it a bar, in the colour of its process;
bars of shares are half as high.  Behind the rows is what happened to processes:
dead, stopped, without a server; crashes of the server, and leases that were
broken.  Of a history that is wrong only the time around its first fault is drawn,
whose lines have a frame.
"""
import os
import sys
from xml.sax.saxutils import escape

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from check import NEVER, History, lines_of  # noqa: E402

WIDTH, LEFT, ROW, TOP = 1400, 90, 46, 40
# As in tests/tools/bench/charts/style.gp: the colour-blind can tell them apart.
COLOURS = "#808080 #e69f00 #56b4e9 #009e73 #cc79a7 #0072b2 #d55e00 #b8a800".split()
HARMS = {
    "died": "#d00000",
    "stopped": "#a0a0a0",
    "away": "#c8b890",
    "crashed": "#d08000",
    "break": "#7030a0",
}
STYLE = """<style>text { font: 12px sans-serif; fill: #303030 }
.ground { fill: #ffffff } .grid { stroke: #d8d8d8 }
@media (prefers-color-scheme: dark) { .ground { fill: #161b22 }
text { fill: #d0d7de } .grid { stroke: #373e47 } }</style>"""


class Picture:
    def __init__(self, history):
        self.history = history
        wrong = history.check()
        self.faults = wrong[0][2] if wrong else ()
        self.title = "%s: %s" % wrong[0][:2] if wrong else "every promise was kept"
        times = [
            time
            for line in self.faults or history.lines
            for time in (line.begun, line.ended)
            if time != NEVER
        ] or [0.0]
        around = 300.0 if wrong else 0.0
        self.begun, self.ended = min(times) - around, max(times) + around
        self.locks = [lock for lock in sorted(history.holds) if history.holds[lock]]
        self.out = []

    def at(self, time):
        """Where a time is, within the picture."""
        part = (min(time, self.ended) - self.begun) / max(self.ended - self.begun, 1)
        return LEFT + max(part, 0.0) * (WIDTH - LEFT - 20)

    def bar(self, begun, ended, top, height, colour, title, more=""):
        """A bar, at least as wide as can be seen."""
        if ended < self.begun or begun > self.ended:
            return
        left = self.at(begun)
        self.out.append(
            '<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s" %s>'
            "<title>%s</title></rect>"
            % (
                left,
                top,
                max(self.at(ended) - left, 1.5),
                height,
                colour,
                more,
                escape(title),
            )
        )

    def text(self, x, y, text):
        self.out.append('<text x="%.1f" y="%.1f">%s</text>' % (x, y, escape(text)))

    def draw_harms(self, bottom):
        history = self.history
        for line in history.stops + history.outages + history.harms:
            self.bar(
                line.begun,
                line.begun if line.verb in ("died", "break") else line.ended,
                TOP,
                bottom - TOP,
                HARMS[line.verb],
                line.text,
                'fill-opacity="%s"' % (0.6 if line.verb in ("died", "break") else 0.15),
            )

    def draw_lock(self, lock, top):
        self.text(8, top + ROW / 2 + 4, lock)
        processes = sorted({line.process for line in self.history.lines})
        for hold in self.history.holds[lock]:
            place = processes.index(hold.grant.process)
            for belief in self.history.beliefs_of(hold):
                is_shared = bool(belief.weight)
                half = (place % 2) * (ROW - 8) / 2 if is_shared else 0
                self.bar(
                    belief.begun,
                    belief.until,
                    top + 4 + half,
                    (ROW - 8) / (2 if is_shared else 1),
                    COLOURS[place % len(COLOURS)],
                    "%s until %.3f" % (belief.line.text, belief.until),
                    'stroke="#d00000" stroke-width="3"'
                    if any(line in hold.lines for line in self.faults)
                    else 'fill-opacity="0.85"',
                )
        self.out.append(
            '<path class="grid" d="M%d %dH%d"/>' % (LEFT, top + ROW, WIDTH - 20)
        )

    def draw(self):
        bottom = TOP + ROW * len(self.locks)
        self.text(8, 20, self.title[:190])
        self.draw_harms(bottom)
        for row, lock in enumerate(self.locks):
            self.draw_lock(lock, TOP + ROW * row)
        for tick in range(11):
            time = self.begun + (self.ended - self.begun) * tick / 10
            self.text(self.at(time) - 20, bottom + 18, "%.0f" % (time - self.begun))
        self.text(8, bottom + 18, "ms")
        names = list(HARMS.items())
        for place, (name, colour) in enumerate(names):
            left = LEFT + 110 * place
            self.out.append(
                '<rect x="%d" y="%d" width="12" height="12" fill="%s"/>'
                % (left, bottom + 30, colour)
            )
            self.text(left + 18, bottom + 40, name)
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d">'
            '%s<rect class="ground" width="100%%" height="100%%"/>\n%s\n</svg>'
            % (WIDTH, bottom + 56, STYLE, "\n".join(self.out))
        )


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__)
    print(Picture(History(list(lines_of(arguments[0])))).draw())


if __name__ == "__main__":
    main(sys.argv[1:])
