#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The guest's self-test on QEMU: qemu_selftest.sh QEMU GUEST_DIR CPUS [WORDS]
#
# GUEST_DIR holds kernel.img and initramfs.cpio; WORDS go on the kernel command
# line. Where there are more vCPUs than host cores one host thread runs them
# all: with a thread each, a vCPU that waits for another mostly waits for the
# host's scheduler. run.py judges the TAP lines.
set -eu

if [ $# -lt 3 ]; then
    echo "usage: qemu_selftest.sh QEMU GUEST_DIR CPUS [WORDS]" >&2
    exit 1
fi
qemu=$1
dir=$2
cpus=$3
words=${4:-}

thread=multi
if [ "$cpus" -gt "$(nproc)" ]; then
    thread=single
fi

# STLR;LDAR: QEMU on x86 hosts lets the load pass the store.
exec python3 "$(dirname "$0")/run.py" --timeout 280 --tap \
    --tap-may-fail 'STLR then LDAR stay in order' --forbid 'panic' \
    --match '^init: exit status [01]$' -- \
    "$qemu" -M virt,gic-version=3 -cpu max -smp "$cpus" -m 512M \
    -accel "tcg,thread=$thread" -nographic -no-reboot -nic none \
    -kernel "$dir/kernel.img" -initrd "$dir/initramfs.cpio" \
    -append "init=selftest $words"
