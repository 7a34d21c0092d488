#include "iscsi/login/forwarding_access.h"

#include <algorithm>

#include "base/limits.h"

namespace sluice::iscsi {
namespace {

// A response of one direction must not serve the other, so each has a secret of its own.
std::string derive(const std::string& secret, std::string_view direction) {
  const std::vector<uint8_t> bytes =
      chap_response(ChapAlgorithm::kSha256, 0, secret, as_bytes(direction));
  return std::string(as_text(bytes));
}

}  // namespace

void ForwardingAccess::set_identity(Identity identity) {
  const std::lock_guard lock(mutex_);
  identity_ = std::move(identity);
}

ForwardingAccess::Identity ForwardingAccess::identity() const {
  const std::lock_guard lock(mutex_);
  return identity_;
}

void ForwardingAccess::set_keys(const std::vector<ForwardingKey>& keys) {
  std::vector<ChapPair> made;
  for (const ForwardingKey& key : keys) {
    if (made.size() == limits::kMaxForwardingKeys) break;
    made.push_back({{key.id, derive(key.secret, "sluice forwarder")},
                    {key.id, derive(key.secret, "sluice owner")}});
  }
  const std::lock_guard lock(mutex_);
  for (ChapPair& old : credentials_) wipe(&old);
  credentials_ = std::move(made);
}

std::vector<ChapPair> ForwardingAccess::credentials() const {
  const std::lock_guard lock(mutex_);
  return credentials_;
}

bool ForwardingAccess::fence(uint16_t number, const std::string& incarnation) {
  const std::lock_guard lock(mutex_);
  const std::pair<uint16_t, std::string> one{number, incarnation};
  if (std::find(fenced_.begin(), fenced_.end(), one) != fenced_.end()) return false;
  if (fenced_.size() == limits::kMaxFencedPeers) fenced_.erase(fenced_.begin());
  fenced_.push_back(one);
  return true;
}

void ForwardingAccess::lift(uint16_t number, const std::string& incarnation) {
  const std::lock_guard lock(mutex_);
  std::erase(fenced_, std::pair<uint16_t, std::string>{number, incarnation});
}

bool ForwardingAccess::fenced(uint16_t number, const std::string& incarnation) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(fenced_.begin(), fenced_.end(),
                     [&](const auto& f) { return f.first == number && f.second == incarnation; });
}

}  // namespace sluice::iscsi
