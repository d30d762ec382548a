#!/bin/bash
# Writes the image that this host runs from to its disk, where the kernel is told podwright.disk=DEVICE, and boots it.
set -euo pipefail
argument() { sed -n "s/.*\bpodwright\.$1=\([^ ]*\).*/\1/p" /proc/cmdline; }
disk=$(argument disk)
# What follows the dashes stays with the installed system, as Debian's installer has it.
kept=$(sed -n 's/.* --- *//p' /proc/cmdline)
new=/run/podwright/disk

udevadm settle --exit-if-exists="$disk"
# One for each kind of firmware, and the root.
sfdisk --quiet --wipe always --wipe-partitions always "$disk" <<'PARTITIONS'
label: gpt
name=bios, size=1MiB, type=21686148-6449-6E6F-744E-656564454649
name=efi, size=256MiB, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B
name=root, type=0FC63DAF-8483-4772-8E79-3D69D8477DE4
PARTITIONS
udevadm settle
mapfile -t parts < <(lsblk --noheadings --raw --paths --output NAME,TYPE "$disk" | awk '$2 == "part" {print $1}')
mkfs.vfat "${parts[1]}" >/dev/null
mkfs.ext4 -q -F -L root "${parts[2]}"
mkdir -p "$new"
mount "${parts[2]}" "$new"
cp -a --one-file-system /run/podwright/image/. "$new"
mkdir -p "$new/boot/efi"
mount "${parts[1]}" "$new/boot/efi"
for folder in dev proc sys; do mount --bind "/$folder" "$new/$folder"; done
mkdir -p "$new/run/udev"
mount --bind /run/udev "$new/run/udev"

{
    echo "UUID=$(blkid -s UUID -o value "${parts[2]}") / ext4 errors=remount-ro 0 1"
    echo "UUID=$(blkid -s UUID -o value "${parts[1]}") /boot/efi vfat umask=0077 0 1"
} >"$new/etc/fstab"
printf 'GRUB_TIMEOUT=2\nGRUB_DISTRIBUTOR=Debian\nGRUB_CMDLINE_LINUX="%s"\n' "$kept" >"$new/etc/default/grub"
systemd-machine-id-setup --root="$new"
chroot "$new" grub-install --target=i386-pc "$disk"
chroot "$new" grub-install --target=x86_64-efi --efi-directory=/boot/efi --removable --no-nvram
chroot "$new" update-grub
chroot "$new" /bin/bash -e </run/podwright/host.sh

umount --recursive "$new"
# The server sends this host to its disk from now on.
bash -e /run/podwright/done.sh
systemctl reboot
