#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws an incast, as docs/explanation/congestion.md shows it: runs tests/sim/test_incast.c and makes an SVG
of its output. The upper part shows the bytes that wait in the switch. The lower part shows the
rates of the senders as a band: the least, the median and the most of them.

usage: scripts/lib/incast.py [BUILD] > docs/explanation/incast.svg"""

import csv
import os
import statistics
import subprocess
import sys
import tempfile

WIDTH, HEIGHT, LEFT, GAP, TOP = 640, 190, 60, 84, 52
MESSAGE_BITS = (64 << 10) * 8
OVER = 40  # a rate is the mean over this many samples
CABLE = 25  # Gb/s
BLUE, LIGHT, GREY, RED = '#1f5fbf', '#b9d0ee', '#888', '#c33'


def run(build):
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, 'incast.csv')
        subprocess.run([os.path.join(build, 'tests/sim/fabric/test-sim-incast')], check=True,
                       env={**os.environ, 'HCASIM_INCAST_CSV': path}, stdout=subprocess.DEVNULL)
        with open(path, encoding='ascii') as f:
            rows = list(csv.reader(f))[1:]
    return [[float(v) for v in row] for row in rows]


class Panel:
    def __init__(self, top, most_x, most_y, title):
        self.top, self.most_x, self.most_y, self.lines = top, most_x, most_y, []
        self.legend_x = LEFT
        self.lines.append(f'<text x="{LEFT}" y="{top - 28}" font-weight="bold">{title}</text>')
        for i in range(5):
            y, value = top + HEIGHT * (4 - i) / 4, most_y * i / 4
            self.lines.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + WIDTH}" y2="{y:.1f}" '
                              'stroke="#ddd"/>')
            self.text(LEFT - 6, y + 4, f'{value:g}', 'end')
        for i in range(0, int(most_x) + 1, 10):
            self.text(LEFT + WIDTH * i / most_x, top + HEIGHT + 15, f'{i} ms', 'middle')

    def text(self, x, y, text, anchor):
        self.lines.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>')

    def legend(self, color, height, text, width):
        """A sample of a curve or band, its meaning, and how wide both are."""
        y = self.top - 12
        self.lines.append(f'<rect x="{self.legend_x}" y="{y - height / 2:.1f}" width="22" '
                          f'height="{height}" fill="{color}"/>')
        self.text(self.legend_x + 28, y + 4, text, 'start')
        self.legend_x += width

    def points(self, points):
        return ' '.join(f'{LEFT + WIDTH * x / self.most_x:.1f},'
                        f'{self.top + HEIGHT * (1 - min(y / self.most_y, 1)):.1f}'
                        for x, y in points)

    def curve(self, points, color, width):
        self.lines.append(f'<polyline points="{self.points(points)}" fill="none" '
                          f'stroke="{color}" stroke-width="{width}"/>')

    def band(self, low, high, color):
        self.lines.append(f'<polygon points="{self.points(high + low[::-1])}" fill="{color}"/>')


def rates_of(rows):
    """Returns (ms, [Gb/s of each sender]) for the middle of each span of OVER samples."""
    return [((a[0] + b[0]) / 2, [(y - x) * MESSAGE_BITS / (b[0] - a[0]) / 1e6
                                 for x, y in zip(a[3:], b[3:])])
            for a, b in list(zip(rows, rows[OVER:]))[::OVER // 4]]


def draw(rows):
    most_x, senders = rows[-1][0], len(rows[0]) - 3
    queues = Panel(TOP, most_x, 10, 'Bytes that wait in the switch for the target, MB')
    queues.legend(GREY, 2, 'without marks', 150)
    queues.legend(BLUE, 2, 'with marks, min_time_between_cnps 0 and clamp_tgt_rate', 0)
    queues.curve([(r[0], r[1] / 1e6) for r in rows], GREY, 1.5)
    queues.curve([(r[0], r[2] / 1e6) for r in rows], BLUE, 1.5)
    rates = Panel(TOP + HEIGHT + GAP, most_x, 1.2,
                  f'Rates of the {senders} senders with marks, Gb/s (means of 4 ms)')
    rates.legend(LIGHT, 10, 'from the least to the most', 220)
    rates.legend(BLUE, 2, 'median', 95)
    rates.legend(RED, 2, f'fair share: {CABLE} Gb/s / {senders}', 0)
    of = rates_of(rows)
    rates.band([(ms, min(all_)) for ms, all_ in of], [(ms, max(all_)) for ms, all_ in of], LIGHT)
    rates.curve([(ms, statistics.median(all_)) for ms, all_ in of], BLUE, 1.5)
    rates.curve([(0, CABLE / senders), (most_x, CABLE / senders)], RED, 1)
    return queues.lines + rates.lines


def main():
    if any(arg in ('-h', '--help') for arg in sys.argv):
        print(__doc__)
        return
    lines = draw(run(sys.argv[1] if len(sys.argv) > 1 else 'build'))
    width, height = LEFT + WIDTH + 30, TOP + 2 * HEIGHT + GAP + 30
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
          'font-family="sans-serif" font-size="12">')
    print(f'<rect width="{width}" height="{height}" fill="white"/>')
    print('\n'.join(lines))
    print('</svg>')


if __name__ == '__main__':
    main()
