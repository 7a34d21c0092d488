#include "control/host_access.h"

#include <string>
#include <vector>

#include "base/limits.h"
#include "iscsi/login/chap.h"

namespace sluice::control {
namespace {

// Limit for hosts without one, as HostSpec.max_sessions in host.proto documents.
constexpr unsigned kDefaultSessions = 64;

Result<void> check_credential(const std::string& direction, const std::string& secret,
                              const std::vector<std::string>& names) {
  if (secret.size() < limits::kMinChapSecret || secret.size() > limits::kMaxChapSecret) {
    return Error{"its " + direction + " secret has " + std::to_string(secret.size()) +
                 " bytes, allowed are 12 to 255"};
  }
  for (const std::string& name : names) {
    if (!name.empty() && name.size() <= limits::kMaxChapUser) continue;
    return Error{
        "its " + direction + " name has " + std::to_string(name.size()) +
        " bytes, allowed are 1 to 255; a control plane that resolves empty names is needed"};
  }
  return {};
}

Result<void> fill_chap(const wire::DesiredHost& host, lun::HostAccess* entry) {
  if (!host.has_chap()) {
    if (host.chap_usernames().empty()) return {};
    return Error{"it has CHAP names and no CHAP secret"};
  }
  entry->chap = {host.chap().username(), host.chap().password()};
  // A control plane of release 880afa1 sends one name for all initiators.
  if (host.chap_usernames().empty()) {
    return check_credential("CHAP", entry->chap.secret, {entry->chap.user});
  }
  entry->chap_users.assign(host.chap_usernames().begin(), host.chap_usernames().end());
  if (entry->chap_users.size() != entry->initiators.size()) {
    return Error{"it has " + std::to_string(entry->initiators.size()) + " initiators and " +
                 std::to_string(entry->chap_users.size()) + " CHAP names"};
  }
  return check_credential("CHAP", entry->chap.secret, entry->chap_users);
}

Result<void> fill_mutual(const wire::DesiredHost& host, const wire::DesiredAccess& access,
                         lun::HostAccess* entry) {
  if (!host.has_mutual_chap()) return {};
  if (!host.has_chap()) return Error{"mutual CHAP needs CHAP"};
  const std::string& resolved = access.mutual_chap_username();
  entry->mutual = {resolved.empty() ? host.mutual_chap().username() : resolved,
                   host.mutual_chap().password()};
  return check_credential("mutual CHAP", entry->mutual.secret, {entry->mutual.user});
}

}  // namespace

Result<lun::HostAccess> host_access(const wire::DesiredHost& host,
                                    const wire::DesiredAccess& access) {
  // An entry without initiators would admit every initiator.
  if (host.initiators().empty()) return Error{"it has no initiators"};
  lun::HostAccess entry;
  entry.host = host.uid();
  entry.initiators.assign(host.initiators().begin(), host.initiators().end());
  entry.portals.assign(access.portals().begin(), access.portals().end());
  entry.redirect = access.redirect();
  entry.max_sessions =
      host.max_sessions() > 0 ? static_cast<unsigned>(host.max_sessions()) : kDefaultSessions;
  Result<void> credentials = fill_chap(host, &entry);
  if (credentials) credentials = fill_mutual(host, access, &entry);
  if (credentials) return entry;
  iscsi::wipe(&entry);
  return Error{credentials.error()};
}

std::string host_of(const lun::Exports& exports, const std::string& iqn,
                    const std::string& initiator) {
  lun::HostAccess access;
  const auto target = exports.find(iqn);
  if (!target || !target->access_for(initiator, &access)) return {};
  iscsi::wipe(&access);
  return access.host;
}

}  // namespace sluice::control
