# Sourced by scripts that make a root with Debian 12, as root.
# shellcheck shell=bash

# debian_make ROOT OPTION... : a Debian without recommended packages and translations, from the mirror of this machine. The options are those
# of mmdebstrap.
debian_make() {
  local into=$1
  shift
  "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../.ci/debian" bookworm "$into" --dpkgopt='path-exclude=/usr/share/locale/*' "$@"
}

# debian_make_bare ROOT "PACKAGE..." OPTION... : a Debian with systemd, in which apt works without a network. The only repository is in the
# root, in /packages/mirror: it has the named packages, which are not installed, and those that they need. A package may be the path of a
# file in the root. apt asks for no confirmation, because no person answers.
debian_make_bare() {
  local into=$1 wanted=$2
  shift 2
  # shellcheck disable=SC2016 # mmdebstrap puts the folder in for $1
  debian_make "$into" --variant=apt --include=systemd-sysv,procps,iproute2,e2fsprogs --aptopt='APT::Get::Assume-Yes "true"' "$@" \
    --customize-hook='mkdir -p "$1/packages/mirror/partial"' \
    --customize-hook="chroot \"\$1\" sh -c 'apt-get install -q --download-only -o Dir::Cache::archives=/packages/mirror $wanted'" \
    --customize-hook='cd "$1/packages/mirror" && for file in *%3a*; do [ ! -e "$file" ] || mv "$file" "${file%%_*}_${file##*%3a}"; done' \
    --customize-hook='cd "$1/packages/mirror" && apt-ftparchive packages . >Packages && apt-ftparchive release . >../Release && mv ../Release .' \
    --customize-hook='rm -f "$1"/etc/apt/sources.list.d/0000*' \
    --customize-hook='echo "deb [trusted=yes] file:/packages/mirror ./" >"$1/etc/apt/sources.list"' \
    --customize-hook='rm -rf "$1"/var/lib/apt/lists/*' --customize-hook='chroot "$1" apt-get update -q' --skip=cleanup/apt/lists
}
