# shellcheck shell=sh
# With the last of the packages that have a service, configuration, keys and account are removed. Data is never removed: it belongs to
# root then, because a later account may get the number of the removed one.
if [ "$1" = purge ]; then
  remaining=
  for other in sluice-gateway sluice-controlplane; do
    if [ "$other" = "$DPKG_MAINTSCRIPT_PACKAGE" ]; then continue; fi
    case $(dpkg-query -W -f '${db:Status-Status}' "$other" 2>/dev/null || true) in
      '' | not-installed) ;;
      *) remaining=$other ;;
    esac
  done
  if [ -z "$remaining" ]; then
    rm -rf /etc/sluice
    for data in /var/lib/sluice /var/lib/sluice-controlplane; do
      if [ -d "$data" ]; then chown root:root "$data"; fi
    done
    if getent passwd sluice >/dev/null; then userdel sluice; fi
  fi
fi
