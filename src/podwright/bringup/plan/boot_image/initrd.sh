#!/bin/sh
# Puts into the initrd what boot.sh needs beside the network's drivers; initramfs-tools calls it.
case $1 in prereqs) exit ;; esac
. /usr/share/initramfs-tools/hook-functions
manual_add_modules loop squashfs overlay
