#include "iscsi/login/forwarding_access.h"

#include <algorithm>

#include "base/limits.h"
#include "base/safety_mutation.h"

namespace sluice::iscsi {
namespace {

// A response of one direction must not serve the other, so each has a secret of its own.
std::string derive(const std::string& secret, std::string_view direction) {
  const std::vector<uint8_t> bytes =
      chap_response(ChapAlgorithm::kSha256, 0, secret, as_bytes(direction));
  return std::string(as_text(bytes));
}

std::vector<ChapPair> pairs_of(const std::vector<ForwardingKey>& keys) {
  std::vector<ChapPair> made;
  for (const ForwardingKey& key : keys) {
    if (made.size() == limits::kMaxForwardingKeys) break;
    made.push_back({{key.id, derive(key.secret, "sluice forwarder")},
                    {key.id, derive(key.secret, "sluice owner")}});
  }
  return made;
}

void wipe_all(std::vector<ChapPair>* pairs) {
  for (ChapPair& pair : *pairs) wipe(&pair);
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
  std::vector<ChapPair> made = pairs_of(keys);
  const std::lock_guard lock(mutex_);
  wipe_all(&shared_);
  shared_ = std::move(made);
}

void ForwardingAccess::set_peers(const std::vector<KnownPeer>& peers) {
  std::vector<Entry> next;
  for (const KnownPeer& peer : peers) {
    if (next.size() == limits::kMaxPeers) break;
    next.push_back({peer.number, peer.incarnation, pairs_of(peer.accepted), pairs_of(peer.own)});
  }
  const std::lock_guard lock(mutex_);
  std::swap(peers_, next);
  for (Entry& was : next) {
    if (find(was.number, was.incarnation) == nullptr && revoked_.size() < limits::kMaxPeers) {
      revoked_.push_back(was.number);
    }
    wipe_all(&was.accepted);
    wipe_all(&was.own);
  }
}

const ForwardingAccess::Entry* ForwardingAccess::find(uint16_t number,
                                                      const std::string& incarnation) const {
  const auto at = std::find_if(peers_.begin(), peers_.end(), [&](const Entry& entry) {
    return entry.number == number && entry.incarnation == incarnation;
  });
  return at == peers_.end() ? nullptr : &*at;
}

bool ForwardingAccess::knows(uint16_t number, const std::string& incarnation) const {
  const std::lock_guard lock(mutex_);
  return find(number, incarnation) != nullptr || mutation_disables(Guard::kPeer);
}

bool ForwardingAccess::replaced(uint16_t number, const std::string& incarnation) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(peers_.begin(), peers_.end(), [&](const Entry& entry) {
    return entry.number == number && entry.incarnation != incarnation;
  });
}

std::vector<uint16_t> ForwardingAccess::take_revoked() {
  const std::lock_guard lock(mutex_);
  return std::exchange(revoked_, {});
}

std::vector<ChapPair> ForwardingAccess::with_shared(std::vector<ChapPair> pairs) const {
  pairs.insert(pairs.end(), shared_.begin(), shared_.end());
  return pairs;
}

std::vector<ChapPair> ForwardingAccess::credentials_of(uint16_t number,
                                                       const std::string& incarnation) const {
  const std::lock_guard lock(mutex_);
  std::vector<ChapPair> pairs;
  if (mutation_disables(Guard::kPeer)) {  // a key of any peer will do
    for (const Entry& entry : peers_) {
      pairs.insert(pairs.end(), entry.accepted.begin(), entry.accepted.end());
    }
    return with_shared(std::move(pairs));
  }
  const Entry* entry = find(number, incarnation);
  return entry == nullptr ? pairs : with_shared(entry->accepted);
}

std::vector<ChapPair> ForwardingAccess::credentials_for(uint16_t number,
                                                        const std::string& incarnation) const {
  const std::lock_guard lock(mutex_);
  const Entry* entry = find(number, incarnation);
  return with_shared(entry == nullptr ? std::vector<ChapPair>{} : entry->own);
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
