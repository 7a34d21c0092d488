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

void HostDirectory::add(const HostAccess& host) {
  const bool chap = host.chap.configured();
  asks_chap_ = asks_chap_ || chap;
  HostAccess entry = host;
  entry.chap_users.clear();
  entry.initiators.clear();  // the directory needs no copy of the names in each entry
  if (host.initiators.empty()) {
    if (!anybody_ || (chap && !anybody_->chap.configured())) anybody_ = std::move(entry);
    return;
  }
  for (size_t i = 0; i < host.initiators.size(); ++i) {
    if (i < host.chap_users.size()) entry.chap.user = host.chap_users[i];
    const auto [at, added] = by_name_.try_emplace(host.initiators[i], entry);
    if (!added && chap && !at->second.chap.configured()) at->second = entry;
  }
}

const HostAccess* HostDirectory::find(std::string_view initiator) const {
  const auto at = by_name_.find(initiator);
  if (at != by_name_.end()) return &at->second;
  return anybody_ ? &*anybody_ : nullptr;
}

}  // namespace sluice::lun
