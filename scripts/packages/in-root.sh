#!/bin/bash
# in-root.sh - runs in a clean root: installs, uses, upgrades, removes. Fails at the first thing that is not as it should be.
# usage: in-root.sh deb|rpm OLD NEW OLD_VERSION NEW_VERSION       OLD and NEW: packages
set -euo pipefail
kind=$1 old=$2 new=$3 old_version=$4 new_version=$5
unit=/etc/systemd/system/multi-user.target.wants/gpuscope.service
config=/etc/gpuscope/serve.toml
step() { echo "  $*"; }
die() { echo "in-root.sh: $*" >&2; exit 1; }

if [ "$kind" = deb ]; then
  install() { dpkg --install "$1" >/dev/null; }
  installed_version() { dpkg-query --show --showformat '${Version}' gpuscope; }
  remove() { dpkg --remove gpuscope >/dev/null; }
else
  # Debian's warns of being rpm
  quiet() { "$@" 2> >(grep -vE '^rpm: (RPM should not|However assuming)' >&2); }
  install() { quiet rpm --upgrade --quiet "$1"; }
  installed_version() { rpm --query --queryformat '%{VERSION}' gpuscope; }
  remove() { quiet rpm --erase --quiet gpuscope; }
fi
# What a package manager writes for itself is not the package's.
files() {
  find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run -o -path /packages \) -prune -o -print |
    grep -vE '^/var/(log/|cache/(man|ldconfig|debconf)|lib/(dpkg/(status|available|diversions|statoverride|lock|triggers)|rpm))' | LC_ALL=C sort
}

files >/tmp/before
step "installs"
install "$old"
[ "$(installed_version)" = "$old_version" ] || die "not $old_version but $(installed_version)"
step "says $(gpuscope --version)"
[[ $(gpuscope --version) == "gpuscope $new_version ("* ]] || die "another program"
gpuscope --version --verbose | grep -q '^features: .*serve' || die "a program without features"
gpuscope doctor >/tmp/doctor || die "doctor: $(cat /tmp/doctor)"
gpuscope run -- /bin/true 2>/tmp/run || die "run: $(cat /tmp/run)"
[ "$(gpuscope run -q -- /bin/echo seen 2>/dev/null)" = seen ] || die "run: the program's output is missing"
gpuscope serve --config $config --check-config >/tmp/config 2>&1 || die "the configuration is refused"
for file in /usr/share/man/man1/gpuscope.1.gz /usr/share/bash-completion/completions/gpuscope /usr/share/gpuscope/hooks/pytorch.toml; do
  [ -s "$file" ] || die "$file is missing"
done
step "the service is there, and not enabled until it is asked for"
[ ! -e $unit ] || die "$unit is there"
systemctl --quiet enable gpuscope 2>/dev/null
[ -L $unit ] || die "systemctl enable does not find the unit"

step "upgrades: changed configuration and state stay, the service stays enabled"
echo '# mine' >>$config
mkdir -p /var/lib/gpuscope && echo state >/var/lib/gpuscope/devices
install "$new"
[ "$(installed_version)" = "$new_version" ] || die "not $new_version but $(installed_version)"
tail -1 $config | grep -qx '# mine' || die "the configuration was overwritten"
[ "$(cat /var/lib/gpuscope/devices)" = state ] || die "the state is gone"
[ -L $unit ] || die "the service is no longer enabled"

step "removes: configuration and state stay, nothing else"
remove
[ ! -e $unit ] && [ ! -L $unit ] || die "$unit stays"
grep -qx '# mine' $config $config.rpmsave 2>/dev/null || die "the changed configuration is gone"
files >/tmp/removed
left=$(comm -13 /tmp/before /tmp/removed | grep -vE '^/(etc/gpuscope|var/lib/gpuscope|var/cache/gpuscope|var/lib/dpkg/info/gpuscope\.)' || true)
[ -z "$left" ] || die "it leaves: $left"
gone=$(comm -23 /tmp/before /tmp/removed)
[ -z "$gone" ] || die "it took with it: $gone"

if [ "$kind" = deb ]; then
  step "purges: nothing stays"
  dpkg --purge gpuscope >/dev/null
  files >/tmp/purged
  diff /tmp/before /tmp/purged >/tmp/diff || die "purging leaves: $(cat /tmp/diff)"
fi
