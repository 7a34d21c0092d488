# Sourced after tier.sh: packages like those of build/packages, but for the fields that tests compare.
# shellcheck shell=bash disable=SC2154 # scratch and root come from tier.sh

# repacked VERSION ARCHITECTURE FOLDER PACKAGE : puts the same package with that version, and with that architecture unless it is for all,
# into the folder.
repacked() {
  local built
  built=$("$root/.ci/version")
  dpkg-deb -R "$4" "$scratch/package"
  sed -i "s/^Version: .*/Version: $1/; s/(= $built)/(= $1)/g; s/^Architecture: amd64$/Architecture: $2/" "$scratch/package/DEBIAN/control"
  dpkg-deb --root-owner-group -Zgzip -z1 -b "$scratch/package" "$3" >"$scratch/build.log"
  rm -r "$scratch/package"
}
