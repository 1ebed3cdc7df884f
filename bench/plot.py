"""Plots as SVG, without a library: a curve with error bars and the ideal line, stacked bars, bars side by side, lines.

Start at: curve, stacks, bars, lines.
"""

import math

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 400, 60, 45, 40, 150
COLOURS = ["#4878a8", "#a0b8d0", "#d08848", "#78a058", "#b06078", "#8870a8", "#909090", "#404040", "#c8a040", "#50a0a0",
           "#c06040", "#c0c0c0"]


def spread(base, now):
    """(least, of the medians, greatest) speed-up of the sum of queries. Both: a list of times for each query."""
    def total(times, pick):
        return sum(pick(sorted(t)) for t in times)

    def middle(t):
        return (t[(len(t) - 1) // 2] + t[len(t) // 2]) / 2

    whole = total(base, middle)
    return whole / total(now, lambda t: t[-1]), whole / total(now, middle), whole / total(now, lambda t: t[0])


class Svg:
    def __init__(self, title, width=WIDTH, below=0):
        """`below`: more height under the plot."""
        height = HEIGHT + below
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
                      'font-size="12">', f'<rect width="{width}" height="{height}" fill="white"/>',
                      f'<text x="{LEFT}" y="22" font-size="15">{title}</text>']

    def line(self, x1, y1, x2, y2, colour="#404040", dash=""):
        style = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{style}/>')

    def text(self, x, y, text, anchor="middle"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>')

    def slanted(self, x, y, text):
        """Text that ends at (x, y) and rises to it."""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="end" transform="rotate(-50 {x:.1f} {y:.1f})">{text}</text>')

    def legend(self, left, names):
        """The names of colours, one under the other."""
        for i, (name, colour) in enumerate(names):
            self.box(left, TOP + 18 * i, 10, 10, colour)
            self.text(left + 17, TOP + 9 + 18 * i, name, "start")

    def box(self, x, y, width, height, colour):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>')

    def dot(self, x, y, colour):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>')

    def save(self, path):
        with open(path, "w") as out:
            out.write("\n".join([*self.parts, "</svg>\n"]))


def ticks(greatest):
    """Round numbers from 0 to the greatest value, five or so."""
    step = 10 ** math.floor(math.log10(max(greatest, 1e-9) / 2))
    while greatest / step > 6:
        step *= 2 if greatest / step <= 12 else 2.5
    return [i * step for i in range(int(greatest / step) + 1)]


def axes(svg, greatest, label="ranks", right=WIDTH - RIGHT):
    """The frame up to `right`; returns the place of a value on the upright axis."""
    def y(value):
        return HEIGHT - BOTTOM - value / greatest * (HEIGHT - BOTTOM - TOP)
    for tick in ticks(greatest):
        svg.line(LEFT, y(tick), right, y(tick), "#e0e0e0")
        svg.text(LEFT - 6, y(tick) + 4, f"{tick:g}", "end")
    svg.line(LEFT, TOP, LEFT, HEIGHT - BOTTOM)
    svg.line(LEFT, HEIGHT - BOTTOM, right, HEIGHT - BOTTOM)
    svg.text((LEFT + right) / 2, HEIGHT - 8, label)
    return y


def places(numbers):
    """x of each number of ranks, by its logarithm."""
    first, last = math.log2(numbers[0]), math.log2(numbers[-1])
    width = WIDTH - RIGHT - LEFT - 40
    return {n: LEFT + 20 + (width * (math.log2(n) - first) / (last - first) if last > first else width / 2) for n in numbers}


def curve(path, title, points, ideal):
    """`points`: by number of ranks (least, median, greatest). `ideal`: of a number of ranks."""
    svg = Svg(title)
    numbers = sorted(points)
    x = places(numbers)
    y = axes(svg, 1.05 * max([ideal(n) for n in numbers] + [points[n][2] for n in numbers]))
    for a, b in zip(numbers, numbers[1:]):
        svg.line(x[a], y(ideal(a)), x[b], y(ideal(b)), "#909090", "5 4")
        svg.line(x[a], y(points[a][1]), x[b], y(points[b][1]), COLOURS[0])
    for n in numbers:
        least, middle, greatest = points[n]
        svg.line(x[n], y(least), x[n], y(greatest), COLOURS[0])
        svg.dot(x[n], y(middle), COLOURS[0])
        svg.text(x[n], HEIGHT - BOTTOM + 16, str(n))
    svg.legend(WIDTH - RIGHT + 15, (("measured", COLOURS[0]), ("ideal", "#909090")))
    svg.save(path)


def stacks(path, title, shares):
    """`shares`: by number of ranks {name: value}, the same names in each."""
    svg = Svg(title)
    numbers = sorted(shares)
    y = axes(svg, 1.05 * max(sum(s.values()) for s in shares.values()))
    width = (WIDTH - RIGHT - LEFT) / len(numbers)
    for i, n in enumerate(numbers):
        left, below = LEFT + width * (i + 0.2), 0.0
        for (name, value), colour in zip(shares[n].items(), COLOURS):
            svg.box(left, y(below + value), 0.6 * width, y(below) - y(below + value), colour)
            below += value
        svg.text(left + 0.3 * width, HEIGHT - BOTTOM + 16, str(n))
    svg.legend(WIDTH - RIGHT + 15, zip((name.removesuffix("_ms") for name in shares[numbers[0]]), COLOURS))
    svg.save(path)


def bars(path, title, groups):
    """`groups`: by name {series: value}; a group may lack some of the series of the first one."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    colours = dict(zip(names, COLOURS))
    each = max(8, min(24, 900 // (len(groups) * (len(names) + 1))))  # of a bar
    right = LEFT + each * (len(names) + 1) * len(groups) + 10
    svg = Svg(title, right + RIGHT, 90)
    y = axes(svg, 1.05 * max(value for group in groups.values() for value in group.values()), "", right)
    for i, (group, values) in enumerate(groups.items()):
        left = LEFT + 5 + each * (len(names) + 1) * i
        for j, name in enumerate(names):
            if name in values:
                svg.box(left + each * j, y(values[name]), each - 1, y(0) - y(values[name]), colours[name])
        svg.slanted(left + each * len(names) / 2 + 4, HEIGHT - BOTTOM + 14, group)
    svg.legend(right + 15, colours.items())
    svg.save(path)


def lines(path, title, label, series, name_of=str):
    """`series`: by name {x: y}; the places of x are by its logarithm, `name_of` it is what stands below."""
    svg = Svg(title)
    numbers = sorted({x for points in series.values() for x in points})
    x = places(numbers)
    y = axes(svg, 1.05 * max(value for points in series.values() for value in points.values()), label)
    for points, colour in zip(series.values(), COLOURS):
        there = sorted(points)
        for a, b in zip(there, there[1:]):
            svg.line(x[a], y(points[a]), x[b], y(points[b]), colour)
        for n in there:
            svg.dot(x[n], y(points[n]), colour)
    for n in numbers:
        svg.text(x[n], HEIGHT - BOTTOM + 16, name_of(n))
    svg.legend(WIDTH - RIGHT + 15, zip(series, COLOURS))
    svg.save(path)
