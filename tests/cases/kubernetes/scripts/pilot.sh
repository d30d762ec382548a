#!/bin/sh
# Starts the pilot in the role that is named, with the first Python that is new enough.
# and so is the pilot where a copy of it is held that nobody can write.
job=$(CDPATH= cd -- "${0%/*}" && pwd)

# A program whose name says its version need not be started to find that out.
new_enough() {
    case $(readlink -f "$(command -v "$1")" 2>/dev/null) in
        */python3.[89] | */python3.[1-9][0-9]) return 0 ;;
    esac
    "$1" -S -E -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null
}
for python in "${PODWRIGHT_PYTHON:-python3}" python3.13 python3.12 python3.11 python3.10 python3.9 python3.8 python3; do
    if new_enough "$python"; then
        exec "$python" -I -S "${PODWRIGHT_PILOT:-$job/pilot.pyz}" "$@"
    fi
done
echo "podwright: no Python 3.8 or newer on $(hostname); tried ${PODWRIGHT_PYTHON:-python3}, python3.13 to python3.8" >&2
echo "hint: install python3, or name one with \`python:\` of the scheduler in the pod file" >&2
exit 69
