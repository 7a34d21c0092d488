# Sourced by sluice-host: the checks. Each prints a line `ok` or `FAILED`; a failure has its cause and its remedy.
# shellcheck shell=sh disable=SC2154 # sluice-host sets work, library and expected

failures=0
ok() { printf 'ok      %s\n' "$*"; }
bad() { # WHAT CAUSE REMEDY
  printf 'FAILED  %s\n        cause: %s\n        remedy: %s\n' "$1" "$2" "$3"
  failures=$((failures + 1))
}
value() { # FILE : its line; nothing if there is none
  line=
  if [ -r "$1" ]; then read -r line <"$1" 2>/dev/null || true; fi
  printf %s "$line"
}
reference() { awk -v name="$1" '$1 == name {print $NF}' "$library/iscsid.conf" "$library/multipath.conf"; } # NAME : the wanted value
less() { # VALUE LEAST : the value is no number, or below
  case $1 in '' | *[!0-9]*) return 0 ;; esac
  [ "$1" -lt "$2" ]
}
setting_remedy="run the script that \`sluicectl host-config HOST\` prints again"
# A host abandons a silent path after the interval of pings and the time for an answer. A shorter time breaks the order of retries
# (DESIGN R6). A longer time only delays the change to another path.
ping_interval=$(reference 'node.conn[0].timeo.noop_out_interval')
ping_timeout=$(reference 'node.conn[0].timeo.noop_out_timeout')
silence=$((ping_interval + ping_timeout))
# multipathd sets the recovery time of each session.
recovery=$(reference fast_io_fail_tmo)

# --- what there is. Files of lines: records (TARGET PORTAL), sessions (TARGET PORTAL NAME), disks (DISK TARGET PORTAL).

find_sessions() {
  for session in /sys/class/iscsi_session/session*; do
    [ -e "$session" ] || continue
    number=${session##*session}
    connection=$(printf '%s\n' /sys/class/iscsi_connection/connection"$number":* | head -n 1)
    address=$(value "$connection/persistent_address")
    case $address in *:*) address="[${address#[}" address="${address%]}]" ;; esac
    echo "$(value "$session/targetname") $address:$(value "$connection/persistent_port") session$number"
  done >"$work/sessions"
  for vendor in /sys/block/sd*/device/vendor; do
    [ "$(value "$vendor" | tr -d ' ')" = SLUICE ] || continue
    device=${vendor%/vendor}
    session=$(readlink -f "$device" | sed -n 's|.*/\(session[0-9]*\)/target.*|\1|p')
    disk=${device%/device}
    awk -v disk="${disk##*/}" -v session="${session:-none}" '$3 == session {print disk, $1, $2}' "$work/sessions"
  done >"$work/disks"
  iscsiadm -m node 2>/dev/null | sed -n 's/^\([^ ]*\),[^ ]* \(.*\)$/\2 \1/p' | sort -u >"$work/records"
  # Targets of Sluice: those with disks of it, those with its names, and the expected ones.
  {
    awk '{print $2}' "$work/disks"
    awk '{print $1}' "$work/records" "$work/sessions" | grep '^iqn\.2026-11\.dev\.sluice:'
    sed -n 's/^portal \([^ ]*\) .*/\1/p' "$work/expected"
  } | sort -u >"$work/targets"
}

# --- sessions

check_sessions() {
  if [ ! -s "$work/targets" ]; then
    bad "sessions with targets of Sluice" "this host has no session and no record of a target" \
      "run the script that \`sluicectl host-config HOST\` prints"
  fi
  # A target without a record has been logged in without one, and its sessions do not return after a restart.
  sort -u "$work/records" >"$work/wanted"
  awk '$1 == "portal" {print $2, $3}' "$work/expected" | sort -u - "$work/wanted" >"$work/all"
  while read -r target portal; do
    grep -qxF "$target" "$work/targets" || continue
    session=$(awk -v target="$target" -v portal="$portal" '$1 == target && $2 == portal {print $3; exit}' "$work/sessions")
    state=$(value "/sys/class/iscsi_session/$session/state")
    if [ -z "$session" ]; then
      bad "$target: session at $portal" "the host is not logged in there, so each disk has a path less" \
        "iscsiadm -m node -T $target -p $portal --login; if the login fails, \`sluicectl explain host HOST\` shows why"
    elif [ "$state" != LOGGED_IN ]; then
      bad "$target: session at $portal" "the state of $session is ${state:-unknown}: the gateway does not answer, or refuses the login" \
        "check the network with \`ping\` of ${portal%:*}, and the gateway with \`sluicectl doctor\`; iscsid repeats the login"
    else
      ok "$target: $session at $portal is LOGGED_IN"
    fi
  done <"$work/all"
  while read -r target portal session; do
    grep -qxF "$target" "$work/targets" || continue
    if ! grep -qxF "$target $portal" "$work/records"; then
      bad "$target: record of portal $portal" "$session has no record, so it does not return after a restart of the host" "$setting_remedy"
    fi
    check_session_timeouts "$target at $portal ($session)" "/sys/class/iscsi_session/$session" \
      "/sys/class/iscsi_connection/connection${session#session}:0"
  done <"$work/sessions"
  while read -r target portal; do
    if grep -qxF "$target" "$work/targets"; then check_record "$target" "$portal"; fi
  done <"$work/records"
}

check_record() { # TARGET PORTAL
  iscsiadm -m node -T "$1" -p "$2" 2>/dev/null >"$work/record"
  before=$failures
  while read -r name _ wanted; do
    have=$(awk -v name="$name" '$1 == name {print $3; exit}' "$work/record")
    case $wanted in
      *[!0-9]*)
        [ "$have" = "$wanted" ] ||
          bad "$1 at $2: $name" "it is ${have:-not set}, not $wanted: the session does not return after a restart of the host" \
            "iscsiadm -m node -T $1 -p $2 -o update -n '$name' -v $wanted"
        ;;
      *)
        if less "$have" "$wanted"; then
          bad "$1 at $2: $name" "it is ${have:-not set}, less than $wanted s: the host abandons a silent path too early, or never detects it" \
            "iscsiadm -m node -T $1 -p $2 -o update -n '$name' -v $wanted, then log out there and in again"
        fi
        ;;
    esac
  done <"$library/iscsid.conf"
  [ "$failures" != "$before" ] || ok "$1 at $2: the record has the settings of open-iscsi that gateways rely on"
}

check_session_timeouts() { # TEXT SESSION CONNECTION
  before=$failures
  while read -r file least; do
    have=$(value "$file")
    if less "$have" "$least"; then
      bad "$1: ${file##*/}" "the running session has ${have:-no value}, less than $least s" \
        "correct the record if it is wrong too, then log out there and in again"
    fi
  done <<LEAST
$3/recv_tmo $ping_interval
$3/ping_tmo $ping_timeout
$2/recovery_tmo $recovery
$2/abort_tmo $silence
$2/lu_reset_tmo $silence
$2/tgt_reset_tmo $silence
LEAST
  [ "$failures" != "$before" ] || ok "$1: timeouts of the running session"
}

# --- disks and maps

# designators DISK : the names by which a map may know the disk, of its page 0x83 (SPC-5 §7.7.6): each is a type and an identifier, in
# the form of dm/uuid without `mpath-`.
designators() {
  {
    if command -v sg_vpd >/dev/null; then timeout 10 sg_vpd --page=0x83 --raw "/dev/$1"; else cat "/sys/block/$1/device/vpd_pg83"; fi 2>/dev/null
  } | od -An -v -tx1 | tr -d ' \n' | awk '
    function number(hex,   i, n) { for (i = 1; i <= length(hex); i++) n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1; return n }
    function text(hex,   i, t) {
      for (i = 1; i < length(hex); i += 2) if (substr(hex, i, 2) != "00") t = t sprintf("%c", number(substr(hex, i, 2)))
      return t
    }
    { for (at = 9; at + 8 <= length($0); at += 8 + 2 * size) {
        kind = number(substr($0, at + 2, 2)) % 64; size = number(substr($0, at + 6, 2)); id = substr($0, at + 8, 2 * size)
        if (kind == 3) print "3" id
        if (kind == 8) print "8" text(id)
      } }'
}

check_disk() { # DISK TARGET PORTAL
  device=/sys/block/$1/device what="$1 ($2 at $3)" before=$failures
  if [ "$(value "$device/state")" != running ]; then
    bad "$what: state" "the kernel has the disk as $(value "$device/state"), so it sends no commands over this path" \
      "echo running >$device/state; if that does not last, check the session"
  fi
  access=$(value "$device/access_state")
  case $access in
    active/optimized | active/non-optimized) ;;
    '') bad "$what: ALUA" "the kernel has no ALUA state of this path: no hardware handler is attached" "modprobe scsi_dh_alua; $setting_remedy" ;;
    *) bad "$what: ALUA" "the state of this path is $access: its gateway cannot execute commands of the volume" "\`sluicectl doctor\` shows the cause" ;;
  esac
  for file in timeout eh_timeout; do
    if less "$(value "$device/$file")" "$silence"; then
      bad "$what: SCSI $file" "it is $(value "$device/$file") s, less than $silence s: the host abandons commands that a gateway still executes" \
        "echo 30 >$device/$file, and remove the udev rule or script that sets it"
    fi
  done
  map=$(printf '%s\n' "/sys/block/$1/holders"/dm-* | while read -r holder; do
    case $(value "$holder/dm/uuid") in mpath-*) value "$holder/dm/uuid" && break ;; esac
  done)
  if [ -z "$map" ]; then
    bad "$what: multipath map" "no map has this disk, so a fault of this path is a fault of the disk" \
      "multipath -v2 /dev/$1 shows why; $setting_remedy; then multipathd reconfigure"
  else
    designators "$1" >"$work/designators"
    if ! grep -qxF "${map#mpath-}" "$work/designators"; then
      bad "$what: identity" "the map is ${map#mpath-}, and page 0x83 of the disk has $(tr '\n' ' ' <"$work/designators")" \
        "stop the use of the map: this path leads to another volume, or does not answer. Log out at $3, and in again"
    fi
    echo "$2 ${map#mpath-} $1 $access" >>"$work/paths"
  fi
  [ "$failures" != "$before" ] || ok "$what: running, $access, in map ${map#mpath-} of the same identity"
}

check_maps() {
  : >"$work/paths"
  while read -r disk target portal; do check_disk "$disk" "$target" "$portal"; done <"$work/disks"
  awk '{print $1, $2}' "$work/paths" | sort -u >"$work/maps"
  while read -r target wwid; do
    have=$(awk -v target="$target" -v wwid="$wwid" '$1 == target && $2 == wwid' "$work/paths" | wc -l)
    sessions=$(awk -v target="$target" '$1 == target' "$work/sessions" | wc -l)
    if [ "$have" != "$sessions" ]; then
      bad "map $wwid: paths" "it has $have paths, and target $target has $sessions sessions" \
        "iscsiadm -m session --rescan; then multipathd reconfigure"
    elif ! grep -qE "^[^ ]+ $wwid [^ ]+ active/optimized$" "$work/paths"; then
      bad "map $wwid: owner" "no path is active/optimized, so all commands are forwarded, or fail" \
        "log in at the missing portals; during a takeover repeat the check; else \`sluicectl doctor\`"
    else
      ok "map $wwid: $have paths, one for each session of its target"
    fi
  done <"$work/maps"
  multipathd show paths raw format "%d %t %o %T %s" 2>/dev/null |
    awk '/SLUICE/ && ($2 != "active" || $3 != "running" || $4 != "ready")' >"$work/failed"
  # A disk without a map has been reported.
  while read -r disk state device checker _; do
    grep -q "^[^ ]* [^ ]* $disk " "$work/paths" || continue
    bad "$disk: path in multipath" "the path is $state, $device, $checker" "check the session of $disk above; \`multipathd reinstate path $disk\` once it answers"
  done <"$work/failed"
}

# --- settings of multipath

# settings_of FILE : the settings `KEY VALUE` for vendor SLUICE of a configuration of multipath, and those of its defaults as
# `defaults.KEY VALUE`. Overrides replace what a device has.
settings_of() {
  awk '
    function put(prefix, from,   k) { for (k in from) print prefix k, from[k] }
    {
      line = $0
      gsub(/[ \t]+/, " ", line); sub(/^ /, "", line); sub(/ $/, "", line); gsub(/"/, "", line)
      if (line == "" || line ~ /^[#!]/) next
    }
    line ~ /\{$/ { depth++; section[depth] = line; sub(/ ?\{$/, "", section[depth]); if (section[depth] == "device") split("", device); next }
    line == "}" {
      if (section[depth] == "device" && device["vendor"] == "SLUICE") for (k in device) found[k] = device[k]
      depth--; next
    }
    {
      key = line; sub(/ .*/, "", key); rest = line; sub(/^[^ ]* ?/, "", rest)
      if (rest == "on") rest = "yes"; if (rest == "off") rest = "no" # multipath has both words
      if (section[depth] == "device") device[key] = rest
      if (section[depth] == "overrides") replaced[key] = rest
      if (section[depth] == "defaults") defaults[key] = rest
    }
    END { for (k in replaced) found[k] = replaced[k]; put("", found); put("defaults.", defaults) }' "$1"
}

check_multipath() {
  if ! multipathd show config 2>/dev/null >"$work/config" || [ ! -s "$work/config" ]; then
    bad "multipathd" "it does not answer" "systemctl enable --now multipathd"
    return
  fi
  settings_of "$work/config" >"$work/live"
  before=$failures
  { settings_of "$library/multipath.conf"; settings_of "$library/multipath-defaults.conf" | grep '^defaults.find_multipaths '; } >"$work/reference"
  while read -r key wanted; do
    have=$(sed -n "s/^$key //p" "$work/live")
    case $key in vendor | product) continue ;; esac
    [ "$have" = "$wanted" ] || bad "multipath: $key" "multipathd has ${have:-no value} for disks of Sluice, not $wanted" \
      "$setting_remedy; a section \`overrides\`, or another file in /etc/multipath/conf.d, may replace its settings"
  done <"$work/reference"
  [ "$failures" != "$before" ] || ok "multipath: multipathd has the settings for disks of Sluice"
}

# --- services

check_services() {
  if [ ! -d /run/systemd/system ]; then
    echo "skipped services: this host does not run systemd; start iscsid, the logins and multipathd at boot by its own means"
    return
  fi
  # Debian calls the logins at boot open-iscsi, other systems call them iscsi.
  logins=open-iscsi
  systemctl cat open-iscsi >/dev/null 2>&1 || logins=iscsi
  for service in multipathd iscsid "$logins"; do
    enabled=$(systemctl is-enabled "$service" 2>/dev/null)
    if [ "$enabled" = enabled ]; then
      ok "service $service starts at boot"
    else
      bad "service $service" "it is ${enabled:-not installed}, so the disks are not there after a restart of the host" "systemctl enable $service"
    fi
  done
}

# --- comparison with the cluster

read_expected() {
  : >"$work/expected"
  [ -n "$expected" ] || return 0
  cat -- "$expected" >"$work/expected" || fail "--expect: cannot read $expected"
  wrong=$(awk '/^#/ || NF == 0 {next} ($1 == "initiator" && NF == 2) || ($1 == "portal" && NF == 3) || ($1 == "lun" && NF == 5) {n++; next}
    {print FNR ": " $0; exit} END {if (n == 0) print "no line of an object"}' "$work/expected")
  [ -z "$wrong" ] || fail "--expect: $expected is no output of \`sluicectl host-config HOST --expect\`: line $wrong"
}

check_expected() {
  [ -s "$work/expected" ] || return 0
  name=$(sed -n 's/^InitiatorName=//p' /etc/iscsi/initiatorname.iscsi 2>/dev/null)
  if grep -qxF "initiator $name" "$work/expected"; then
    ok "initiator name $name is one of the host in the cluster"
  else
    bad "initiator name" "it is ${name:-not set}, and the cluster has $(sed -n 's/^initiator //p' "$work/expected" | tr '\n' ' ')" \
      "correct /etc/iscsi/initiatorname.iscsi, or spec.initiators of the host"
  fi
  # check_sessions has compared the expected portals with the sessions.
  while read -r target portal session; do
    grep -qxF "$target" "$work/targets" || continue
    grep -qxF "portal $target $portal" "$work/expected" ||
      bad "$target: session at $portal" "the cluster has no such portal for this host: $session is at a former portal" \
        "iscsiadm -m node -T $target -p $portal --logout; then the same with -o delete"
  done <"$work/sessions"
  while read -r kind target lun naa volume; do
    [ "$kind" = lun ] || continue
    if grep -qxF -e "$target 3$naa" -e "$target 8naa.$naa" "$work/maps"; then
      ok "$target: LUN $lun, volume $volume, is a multipath map (NAA $naa)"
    else
      bad "$target: LUN $lun, volume $volume" "no multipath map has its identity, NAA $naa" "iscsiadm -m session --rescan; then multipathd reconfigure"
    fi
  done <"$work/expected"
  while read -r target wwid; do
    naa=${wwid#8naa.}
    [ "$naa" != "$wwid" ] || naa=${wwid#3}
    awk -v naa="$naa" '$1 == "lun" && $4 == naa {found = 1} END {exit !found}' "$work/expected" ||
      bad "map $wwid: volume" "the cluster has no volume with this identity at target $target" "close the disk, then remove the map: multipath -f $wwid"
  done <"$work/maps"
}

check_host() {
  read_expected
  find_sessions
  check_sessions
  check_maps
  check_multipath
  check_services
  check_expected
  if [ "$failures" = 0 ]; then
    echo "sluice-host: all is right"
  else
    echo "sluice-host: $failures failures"
    exit 1
  fi
}
