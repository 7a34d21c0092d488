# Sourced by sluice-host: the diagnostic data of a host as a tar.gz. No file of the archive has a CHAP name or secret.
# shellcheck shell=sh disable=SC2154 # sluice-host sets work, library and expected

# put NAME COMMAND... : its output as a file of the archive. A command that fails is data too.
put() {
  name=$1
  shift
  {
    echo "# $*"
    timeout 60 "$@" 2>&1 || echo "# exit status $?"
  } >"$archive/$name"
}

# copy PATH... : files, or folders of files, as they are.
copy() {
  for path in "$@"; do
    [ -f "$path" ] || continue
    mkdir -p "$archive/files${path%/*}"
    cat "$path" >"$archive/files$path"
  done
}

# known_secrets : the CHAP names and secrets that the configuration of open-iscsi has, each once. Records are below /etc/iscsi or
# /var/lib/iscsi.
known_secrets() {
  grep -rhE 'auth\.password(_in)?[[:space:]]*=' /etc/iscsi /var/lib/iscsi 2>/dev/null |
    sed 's/^[^=]*=[[:space:]]*//; s/[[:space:]]*$//' | sort -u | sed '/^$/d'
}

# without_secrets FILE : removes CHAP names and secrets. A secret is also removed where it stands in other text, such as a log.
without_secrets() {
  sed -E -i 's/((discovery|node)\.[a-z.]*auth\.(username|password)(_in)?[[:space:]]*=).*/\1 REMOVED/; s/^([[:space:]]*(username|password)(_in)?:[[:space:]]).*/\1REMOVED/' "$1"
  awk -v secrets="$work/secrets" '
    BEGIN { while ((getline line < secrets) > 0) secret[++n] = line }
    {
      for (i = 1; i <= n; i++) {
        rest = $0; $0 = ""
        while ((at = index(rest, secret[i])) > 0) { $0 = $0 substr(rest, 1, at - 1) "REMOVED"; rest = substr(rest, at + length(secret[i])) }
        $0 = $0 rest
      }
      print
    }' "$1" >"$work/clean" && cat "$work/clean" >"$1"
}

sysfs_values() {
  for file in /sys/class/iscsi_session/session*/[a-z]* /sys/class/iscsi_connection/connection*/[a-z]* \
    /sys/block/sd*/device/vendor /sys/block/sd*/device/model /sys/block/sd*/device/state /sys/block/sd*/device/access_state \
    /sys/block/sd*/device/dh_state /sys/block/sd*/device/timeout /sys/block/sd*/device/eh_timeout /sys/block/sd*/device/wwid \
    /sys/block/dm-*/dm/name /sys/block/dm-*/dm/uuid; do
    case ${file##*/} in username* | password*) continue ;; esac
    if [ -f "$file" ]; then echo "$file: $(cat "$file" 2>/dev/null)"; fi
  done
}

records() {
  iscsiadm -m node | sed 's/,[^ ]* / /' | while read -r portal target; do iscsiadm -m node -T "$target" -p "$portal"; done
}

collect() { # FILE
  destination=$1
  mkdir "$work/sluice-host"
  archive=$work/sluice-host
  known_secrets >"$work/secrets"
  sh "$0" check >"$archive/check" 2>&1 || true
  put sessions iscsiadm -m session -P 3
  records >"$archive/records" 2>&1
  sysfs_values >"$archive/sysfs"
  put multipath multipath -ll
  put multipathd-config multipathd show config
  put multipathd-paths multipathd show paths
  put multipathd-maps multipathd show maps
  put dm-table dmsetup table
  put dm-status dmsetup status
  put disks lsblk -o NAME,TYPE,SIZE,FSTYPE,MOUNTPOINT,WWN,VENDOR,MODEL,SERIAL
  put addresses ip -s address
  put routes ip route show table all
  put kernel uname -a
  put kernel-log dmesg -T
  if command -v dpkg-query >/dev/null; then put packages dpkg-query -W open-iscsi multipath-tools sluice-host 'linux-image-*'; fi
  if [ -d /run/systemd/system ]; then
    put journal journalctl --no-pager -o short-iso -n 5000 -u iscsid -u open-iscsi -u iscsi -u multipathd
    put services systemctl status --no-pager -n 0 iscsid open-iscsi iscsi multipathd
  fi
  copy /etc/os-release /etc/iscsi/iscsid.conf /etc/iscsi/initiatorname.iscsi /etc/multipath.conf /etc/multipath/bindings \
    /etc/multipath/wwids /etc/multipath/conf.d/*
  find "$archive" -type f >"$work/files"
  while read -r path; do without_secrets "$path" || fail "cannot remove secrets from ${path#"$archive/"}: nothing was written"; done <"$work/files"
  tar -C "$work" -czf "$work/data.tar.gz" sluice-host || fail "tar failed: nothing was written"
  cat "$work/data.tar.gz" >"$destination" || fail "cannot write $destination: name another file"
  echo "sluice-host: $destination has the diagnostic data of this host, without CHAP names and secrets"
}
