#include "nexus/host_directory.h"

#include <utility>

namespace sluice::lun {
namespace {

// Secrets are erased: a login's at its end, a directory's when it is replaced.
void forget(HostAccess* host) {
  for (ChapCredential* credential : {&host->chap, &host->mutual}) {
    explicit_bzero(credential->secret.data(), credential->secret.size());
  }
}

}  // namespace

HostDirectory::~HostDirectory() {
  for (auto& [name, host] : by_name_) forget(&host);
  if (anybody_) forget(&*anybody_);
}

// A host is added once for each of its targets, so the entry of a known host is not copied.
void HostDirectory::add(const HostAccess& host) {
  const bool chap = host.chap.configured();
  asks_chap_ = asks_chap_ || chap;
  std::optional<HostAccess> entry;
  const auto replaces = [&](const HostAccess* known) {
    if (known != nullptr && (known->chap.configured() || !chap)) return false;
    if (!entry) {
      entry = host;
      entry->chap_users.clear();
      entry->initiators.clear();  // the directory needs no copy of the names in each entry
    }
    return true;
  };
  if (host.initiators.empty() && replaces(anybody_ ? &*anybody_ : nullptr)) anybody_ = *entry;
  for (size_t i = 0; i < host.initiators.size(); ++i) {
    const auto known = by_name_.find(host.initiators[i]);
    if (!replaces(known == by_name_.end() ? nullptr : &known->second)) continue;
    if (i < host.chap_users.size()) entry->chap.user = host.chap_users[i];
    by_name_.insert_or_assign(host.initiators[i], *entry);
  }
  if (entry) forget(&*entry);
}

const HostAccess* HostDirectory::find(std::string_view initiator) const {
  const auto at = by_name_.find(initiator);
  if (at != by_name_.end()) return &at->second;
  return anybody_ ? &*anybody_ : nullptr;
}

}  // namespace sluice::lun
