# debian.sh - sourced: debian_packages SUITE SCRATCH PACKAGE…: the .deb files of a suite of Debian, whatever this machine has, in
# SCRATCH/debs. Nothing is installed. Fails where they cannot be had. Needs apt-get and debian-archive-keyring.
# DEBIAN_ARCH: of which processor, amd64 unless said.
# shellcheck shell=bash
debian_key=/usr/share/keyrings/debian-archive-keyring.gpg
debian_mirror() {
  local mirror
  mirror=$(grep -hsE '^URIs:' /etc/apt/sources.list.d/*.sources | awk '{print $2}' | grep -E '/debian/?$' | sort -u | head -1 || true)
  echo "${mirror:-http://deb.debian.org/debian}"
}

# As Debian calls a processor, x86_64 or aarch64.
debian_arch() {
  case $1 in x86_64) echo amd64 ;; aarch64) echo arm64 ;; *) echo "debian.sh: $1: x86_64 or aarch64" >&2; return 2 ;; esac
}

debian_packages() {
  local suite=$1 mirror a debs arch=${DEBIAN_ARCH:-amd64}
  mirror=$(debian_mirror)
  mkdir -p "$2"
  a=$(cd "$2" && pwd)/apt debs=$(cd "$2" && pwd)/debs
  shift 2
  mkdir -p "$a/lists/partial" "$a/cache/archives/partial" "$debs"
  echo "deb [arch=$arch signed-by=$debian_key] $mirror $suite main" >"$a/list"
  cat >"$a/apt.conf" <<C
Dir::Etc::sourcelist "$a/list"; Dir::Etc::sourceparts "-"; Dir::State::lists "$a/lists"; Dir::State::status "/dev/null";
Dir::Cache "$a/cache"; APT::Sandbox::User "root"; APT::Architecture "$arch"; APT::Architectures { "$arch"; }; Acquire::Languages "none";
C
  APT_CONFIG=$a/apt.conf apt-get -qq update && (cd "$debs" && APT_CONFIG=$a/apt.conf apt-get -qq download "$@")
}
