#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# weaken.sh OUTPUT DEPFILE OBJECT...: joins objects into one object whose undefined references are
# weak. A library made of it can be loaded, and can run checks, in a process that lacks these symbols.
#
# Names that appear in a header of this project stay strong: the linker finds them, or reports that
# they are missing. A weak reference to a missing function would be NULL until it is called. DEPFILE
# tells ninja of these headers, and of their folders, in which another header may appear.
set -e
out=$1
depfile=$2
shift 2
root=$(dirname "$0")/..
own=$out.own
ld -r -o "$out" "$@"
parts="$root/prm $root/wire $root/model $root/fw $root/qemu-dev"
# shellcheck disable=SC2086 # the parts are words
find $parts -name '*.h' ! -name compat.h -exec grep -ohE '[A-Za-z_][A-Za-z_0-9]*' {} + |
    LC_ALL=C sort -u >"$own"
# shellcheck disable=SC2086
{
    printf '%s:' "$out"
    find $parts \( -type d -o -name '*.h' ! -name compat.h \) -exec printf ' %s' {} +
    echo
} >"$depfile"
nm --undefined-only --format=posix "$out" | cut -d' ' -f1 | LC_ALL=C sort -u |
    LC_ALL=C comm -23 - "$own" >"$out.weak"
objcopy --weaken-symbols="$out.weak" "$out"
