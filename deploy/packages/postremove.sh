#!/bin/sh
# After removing: configuration that was changed and what the service knew of GPUs stay. dpkg's purge takes them, but for files
# that others have put into /etc/gpuscope.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
[ "${1:-}" = purge ] || exit 0
rm -rf /var/lib/gpuscope /var/lib/private/gpuscope /var/cache/gpuscope
rmdir --ignore-fail-on-non-empty /etc/gpuscope 2>/dev/null || true
