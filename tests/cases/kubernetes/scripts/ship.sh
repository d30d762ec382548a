#!/bin/sh
# Sends the record of a node through this container's output. Kubernetes would start anew what ends by itself.
stopped=no
trap 'stopped=yes; kill -TERM "$ship" 2>/dev/null' TERM INT
/bin/sh /podwright/job/pilot.sh ship /podwright/job/order.json &
ship=$!
while kill -0 "$ship" 2>/dev/null; do
    wait "$ship"
done
[ "$stopped" = yes ] || { sleep 86400 & wait $!; }
