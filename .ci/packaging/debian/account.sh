# shellcheck shell=sh
# The account of the services, and the directory of their certificates and keys.
if [ "$1" = configure ]; then
  systemd-sysusers "$DPKG_MAINTSCRIPT_PACKAGE.conf"
  install -d -m 750 -o root -g sluice /etc/sluice/tls
fi
