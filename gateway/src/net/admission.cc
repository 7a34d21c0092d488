#include "net/admission.h"

#include <utility>

namespace sluice::net {

Admission::~Admission() {
  const std::lock_guard lock(all_.mutex_);
  all_.leave(*this);
  --all_.connections_;
}

void Admission::leave_login() {
  const std::lock_guard lock(all_.mutex_);
  all_.leave(*this);
}

void Admission::progressed() {
  const std::lock_guard lock(all_.mutex_);
  if (!in_login_) return;
  std::list<Admission*>& its = all_.networks_.find(network_)->second.in_login;
  its.splice(its.end(), its, at_);
  active_ = ++all_.activity_;
}

Nanos Admission::login_timeout(Nanos configured) const {
  if (known_) return configured;
  const unsigned in_login = all_.in_login_.load(std::memory_order_relaxed);
  const unsigned room = all_.max_unauthenticated_ - all_.reserve_;
  if (in_login * 4 >= room * 3) return std::min(configured, limits::kLoginTimeoutNearlyFull);
  if (in_login * 2 >= room) return std::min(configured, limits::kLoginTimeoutHalfFull);
  return configured;
}

void Admissions::enter(Admission& one) {
  Network& its = networks_[one.network_];
  its.known = its.known || one.known_;
  its.in_login.push_back(&one);
  one.at_ = std::prev(its.in_login.end());
  one.active_ = ++activity_;
  one.in_login_ = true;
  in_login_.fetch_add(1, std::memory_order_relaxed);
  if (!one.known_) ++strangers_in_login_;
}

void Admissions::leave(Admission& one) {
  if (!std::exchange(one.in_login_, false)) return;
  const auto at = networks_.find(one.network_);
  at->second.in_login.erase(one.at_);
  if (at->second.in_login.empty()) networks_.erase(at);
  in_login_.fetch_sub(1, std::memory_order_relaxed);
  if (!one.known_) --strangers_in_login_;
}

bool Admissions::full_for(bool known) const {
  if (in_login_.load(std::memory_order_relaxed) >= max_unauthenticated_) return true;
  return !known && strangers_in_login_ >= max_unauthenticated_ - reserve_;
}

// Of the network with the most connections in login, the newcomer counted, the one idle for
// longest. Strangers first; a stranger evicts no other.
Admission* Admissions::oldest_of_most(const std::string& newcomer, bool known) {
  const auto most = [&](bool of_known) {
    Admission* found = nullptr;
    size_t size = 0;
    for (const auto& [network, its] : networks_) {
      if (its.known != of_known) continue;
      const size_t n = its.in_login.size() + (network == newcomer ? 1 : 0);
      Admission* oldest = its.in_login.front();
      if (found == nullptr || n > size || (n == size && oldest->active_ < found->active_)) {
        found = oldest;
        size = n;
      }
    }
    return found;
  };
  Admission* found = most(false);
  return found == nullptr && known ? most(true) : found;
}

Admission* Admissions::victim(const std::string& network, bool known) {
  const auto its = networks_.find(network);
  const size_t size = its == networks_.end() ? 0 : its->second.in_login.size();
  if (size >= of_one_network_) return its->second.in_login.front();
  return oldest_of_most(network, known);
}

std::shared_ptr<Admission> Admissions::admit(const std::string& network, unsigned reactor) {
  const bool known = known_(network);
  std::shared_ptr<Admission> admitted;
  std::shared_ptr<Admission> evicted;
  {
    const std::lock_guard lock(mutex_);
    const auto its = networks_.find(network);
    const bool share_taken =
        its != networks_.end() && its->second.in_login.size() >= of_one_network_;
    if (share_taken || full_for(known) || connections_ >= max_connections_) {
      Admission* out = victim(network, known);
      if (out == nullptr) return nullptr;
      leave(*out);
      out->evicted_.store(true, std::memory_order_release);
      evicted = out->weak_from_this().lock();  // null: it is ending by itself
    }
    ++connections_;
    admitted.reset(new Admission(*this, network, known, reactor));
    enter(*admitted);
  }
  if (evicted) evict_(std::move(evicted));
  return admitted;
}

}  // namespace sluice::net
