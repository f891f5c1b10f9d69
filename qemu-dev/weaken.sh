#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# weaken.sh OUTPUT OBJECT...: joins objects to one whose references outside are all weak. A
# library made of it can be loaded, and can look around, where the symbols do not exist.
set -e
out=$1
shift
ld -r -o "$out" "$@"
objcopy --wildcard --weaken-symbol='*' "$out"
