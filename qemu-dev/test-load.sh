#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: test-load.sh HCASIM.SO
#
# Loads the plugin into the installed QEMU (or $QEMU). Checks that the device is on the bus, that the
# properties are listed, and that a wrong command line gets one line of the device's own and exit
# status 1. No guest runs. TAP on standard output.
set -u

so=$1
qemu=${QEMU:-qemu-system-x86_64}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
failed=0

# result DESCRIPTION STATUS: prints one line of TAP, and on failure QEMU's output.
result() {
    number=$((number + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $number - $1"
    else
        failed=1
        echo "not ok $number - $1"
        sed 's/^/# /' "$work/out"
        echo
    fi
}

# run ARGUMENT...: runs QEMU with a monitor on standard input and no guest running.
run() {
    timeout 30 "$qemu" -machine q35 -m 64 -nodefaults -S -display none -monitor stdio "$@" \
        >"$work/out" 2>&1
}

# shows DESCRIPTION MONITOR-COMMAND PATTERN ARGUMENT...: QEMU starts, prints PATTERN, and exits with 0.
shows() {
    local what=$1 command=$2 pattern=$3
    shift 3
    printf '%s\nquit\n' "$command" | run "$@" && grep -qE "$pattern" "$work/out"
    result "$what" $?
}

# refuses DESCRIPTION PATTERN ARGUMENT...: QEMU exits with 1 and prints one line, which has PATTERN.
refuses() {
    local what=$1 pattern=$2 status
    shift 2
    run "$@" </dev/null
    status=$?
    # ignore the monitor's greeting
    sed -i -E '/^QEMU [0-9.]+ monitor /d' "$work/out"
    [ $status -eq 1 ] && [ "$(wc -l <"$work/out")" -eq 1 ] && grep -qE "$pattern" "$work/out"
    result "$what" $?
}

user=(-netdev 'user,id=n0')
port=(-device 'pcie-root-port,id=p0')

shows "the function is on the root complex" "info pci" "Ethernet controller: PCI device 15b3:1017" \
    -plugin "$so" -device hcasim
shows "the function is below a root port" "info qtree" "Ethernet controller, .*pci id 15b3:1017" \
    -plugin "$so" "${port[@]}" -device hcasim,bus=p0
shows "two functions get MAC addresses of their own" "info qtree" 'mac = "52:54:00:12:34:57"' \
    -plugin "$so" -device hcasim -device hcasim
shows "the port is in a netdev" "info network" "hca0: .*type=nic" \
    -plugin "$so" "${user[@]}" -device hcasim,id=hca0,netdev=n0
shows "the port is on a link of hcasim's own" "info pci" "15b3:1017" \
    -plugin "$so" -device "hcasim,wire=shm:$work/segment"
shows "the function survives a reset" $'system_reset\ninfo pci' "15b3:1017" \
    -plugin "$so" -device hcasim
shows "the plugin can be given twice" "info pci" "15b3:1017" \
    -plugin "$so" -plugin "$so" -device hcasim
shows "properties have descriptions" "info pci" "profile=NAME +- .*cx4, cx4lx, .*default: cx5" \
    -plugin "$so,help=on"
shows "a size has the default that help names" "info qtree" "memory = 1073741824 \(1 GiB\)" \
    -plugin "$so" -device hcasim
# A copy with the version string of another QEMU.
version=$("$qemu" -display none -plugin "$so,help=on" | sed -n '1s/^hcasim for QEMU //p')
LC_ALL=C sed "s/QEMU $version/QEMU ${version/./,}/g" "$so" >"$work/other.so"
refuses "a QEMU that it was not built for" "not for QEMU .*; to rebuild it, run scripts/setup" \
    -plugin "$work/other.so" -device hcasim
refuses "an unknown argument of the plugin" "hcasim: unknown plugin argument 'color=red'" \
    -plugin "$so,color=red" -device hcasim
refuses "a MAC address that is none" "doesn't take value 'zz'" -plugin "$so" -device hcasim,mac=zz
refuses "a group MAC address" "hcasim: .*MAC" -plugin "$so" -device hcasim,mac=01:00:00:00:00:01
refuses "an unknown profile" "hcasim: there is no profile 'cx99', but: cx4, cx4lx, cx5, cx6dx, cx7, cx8" \
    -plugin "$so" -device hcasim,profile=cx99
refuses "a netdev that is not there" "can't find value 'nope'" \
    -plugin "$so" -device hcasim,netdev=nope
refuses "a netdev and a wire" "hcasim: netdev=n0 and wire=shm:x exclude each other" \
    -plugin "$so" "${user[@]}" -device hcasim,netdev=n0,wire=shm:x
refuses "a wire of no known kind" "hcasim: wire=avian:carrier: .*shm:NAME" \
    -plugin "$so" -device hcasim,wire=avian:carrier
refuses "a wire without a name" "hcasim: wire=shm:: .*shm:NAME" -plugin "$so" -device hcasim,wire=shm:
refuses "a wire in a folder that is not there" "hcasim: wire=shm:$work/no/file: .*No such file" \
    -plugin "$so" -device "hcasim,wire=shm:$work/no/file"
echo "something else" >"$work/note"
refuses "a wire that is another file" "hcasim: wire=shm:$work/note: .*something else" \
    -plugin "$so" -device "hcasim,wire=shm:$work/note"
refuses "a switch that is neither on nor off" "'trace' expects 'on' or 'off'" \
    -plugin "$so" -device hcasim,trace=maybe
refuses "a capture file that cannot be written" "hcasim: capture=$work/no/file: " \
    -plugin "$so" "${user[@]}" -device "hcasim,netdev=n0,capture=$work/no/file"
refuses "a capture of no port" "hcasim: capture=.* wants" \
    -plugin "$so" -device "hcasim,capture=$work/file"
refuses "a control socket that is another file" "hcasim: control=$work/note: .* is no socket" \
    -plugin "$so" -device "hcasim,control=$work/note"
refuses "a property that is not there" "Property 'hcasim.color' not found" \
    -plugin "$so" -device hcasim,color=red

echo "1..$number"
exit $failed
