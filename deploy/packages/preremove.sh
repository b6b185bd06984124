#!/bin/sh
# Before removing, and in an upgrade, where nothing is to be done: dpkg says "upgrade", rpm "1".
set -e
case ${1:-remove} in remove | 0) ;; *) exit 0 ;; esac
command -v systemctl >/dev/null || exit 0
if [ -d /run/systemd/system ]; then systemctl stop gpuscope.service; fi
systemctl --quiet disable gpuscope.service
