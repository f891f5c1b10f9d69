# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# What all scripts here share: the root of the tree, the cache directory, messages and help. Scripts
# source this file after `set -euo pipefail`; it changes nothing on the machine.

# A failure within $(...) is a failure.
shopt -s inherit_errexit

# The root of the tree. Scripts may be called from anywhere.
HCASIM_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# Holds everything that is fetched or built outside the tree. Its content can be deleted at any
# time.
HCASIM_CACHE=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/hcasim
# The Debian release that runs in the guests. scripts/lib/guest --release exports another one.
GUEST_SUITE=${GUEST_SUITE:-trixie}
export HCASIM_ROOT HCASIM_CACHE GUEST_SUITE

say() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die() {
    say "$*"
    exit 1
}

# usage_if_asked "$@": prints the comment block at the head of the calling script as its help.
usage_if_asked() {
    local arg
    for arg in "$@"; do
        case $arg in
        -h | --help)
            awk 'NR == 1 { next } !/^#/ { exit } /SPDX-/ { next } { sub(/^# ?/, ""); print }' "$0"
            exit 0
            ;;
        --)
            return 0
            ;;
        esac
    done
}

# record OUTCOME SECONDS NAME [NOTE]: records a case for scripts/test, if scripts/test asked for it
# (tries.py).
record() {
    [ -z "${HCASIM_RECORD:-}" ] || printf '%s\t1\t1\t%s\t%s\t%s\t%s\n' "$1" "$2" "${HCASIM_SUITE:-${0##*/}}" "$3" \
        "${4:-}" >>"$HCASIM_RECORD/cases"
}

# need COMMAND PACKAGE: if the command is not installed, dies with the package's name.
need() {
    command -v "$1" >/dev/null 2>&1 || die "'$1' is missing: install the package $2"
}

# in_cache NAME COMMAND...: makes the directory $HCASIM_CACHE/NAME once, and prints its path. It
# runs COMMAND with an empty directory as its last argument. The directory gets its name only when
# the command has succeeded, and two callers at a time do not collide. Call it as $(in_cache ...):
# if the command fails, that subshell ends, and the caller with it.
in_cache() {
    local final=$HCASIM_CACHE/$1
    shift
    if [ ! -d "$final" ]; then
        if ! mkdir -p "$HCASIM_CACHE" 2>/dev/null || [ ! -w "$HCASIM_CACHE" ]; then
            die "${HCASIM_CACHE} cannot be written: set XDG_CACHE_HOME to a folder with 3 GB of room"
        fi
        exec 9>"$final.lock"
        flock 9
        if [ ! -d "$final" ]; then
            in_cache_new=$(mktemp -d "$final.new.XXXXXX")
            trap 'rm -rf -- "$in_cache_new"' EXIT
            "$@" "$in_cache_new" 9>&- >&2
            chmod 755 "$in_cache_new"
            mv -T -- "$in_cache_new" "$final"
            trap - EXIT
        fi
        rm -f -- "$final.lock"
        exec 9>&-
    fi
    printf '%s\n' "$final"
}
