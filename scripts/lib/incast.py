#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws an incast as docs/explanation/congestion.md shows it. Runs tests/sim/test_incast.c and makes an SVG of
its output: the upper part shows the bytes that wait in the switch, the lower part the rate of
each sender.

usage: scripts/lib/incast.py [BUILD] > docs/explanation/incast.svg"""

import csv
import os
import subprocess
import sys
import tempfile

WIDTH, HEIGHT, LEFT, GAP = 640, 190, 60, 50
MESSAGE_BITS = (64 << 10) * 8
OVER = 20  # a rate is the mean over this many samples


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
        self.text(LEFT, top - 8, title, 'start')
        for i in range(5):
            y, value = top + HEIGHT * (4 - i) / 4, most_y * i / 4
            self.lines.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + WIDTH}" y2="{y:.1f}" '
                              'stroke="#ddd"/>')
            self.text(LEFT - 6, y + 4, f'{value:g}', 'end')
        for i in range(0, int(most_x) + 1, 10):
            self.text(LEFT + WIDTH * i / most_x, top + HEIGHT + 15, f'{i} ms', 'middle')

    def text(self, x, y, text, anchor):
        self.lines.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>')

    def curve(self, points, color, width):
        at = ' '.join(f'{LEFT + WIDTH * x / self.most_x:.1f},'
                      f'{self.top + HEIGHT * (1 - min(y / self.most_y, 1)):.1f}' for x, y in points)
        self.lines.append(f'<polyline points="{at}" fill="none" stroke="{color}" '
                          f'stroke-width="{width}"/>')


def draw(rows):
    most_x = rows[-1][0]
    queues = Panel(30, most_x, 10, 'Waits for the target, MB: without marks (grey), with them (blue); '
                    'a CNP for each, clamp_tgt_rate')
    queues.curve([(r[0], r[1] / 1e6) for r in rows], '#999', 1.5)
    queues.curve([(r[0], r[2] / 1e6) for r in rows], '#1f5fbf', 1.5)
    rates = Panel(30 + HEIGHT + GAP, most_x, 1.6, 'Each of 32 senders with marks, Gb/s (mean of 2 ms)')
    for sender in range(3, len(rows[0])):
        rates.curve([(b[0], (b[sender] - a[sender]) * MESSAGE_BITS / (b[0] - a[0]) / 1e6)
                     for a, b in zip(rows, rows[OVER:])][::OVER // 2], '#1f5fbf', 0.5)
    share = 25 / (len(rows[0]) - 3)
    rates.curve([(0, share), (most_x, share)], '#c33', 1.5)
    rates.text(LEFT + WIDTH, rates.top + HEIGHT * (1 - share / 1.6) - 4, 'fair share', 'end')
    return queues.lines + rates.lines


def main():
    if any(arg in ('-h', '--help') for arg in sys.argv):
        print(__doc__)
        return
    lines = draw(run(sys.argv[1] if len(sys.argv) > 1 else 'build'))
    width, height = LEFT + WIDTH + 20, 2 * HEIGHT + GAP + 60
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
          'font-family="sans-serif" font-size="12">')
    print(f'<rect width="{width}" height="{height}" fill="white"/>')
    print('\n'.join(lines))
    print('</svg>')


if __name__ == '__main__':
    main()
