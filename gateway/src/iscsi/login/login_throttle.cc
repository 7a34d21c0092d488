#include "iscsi/login/login_throttle.h"

#include <algorithm>
#include <string>

namespace sluice::iscsi {
namespace {

// An iSCSI name has no NUL.
std::string pair_key(const LoginPeer& peer) {
  std::string key(peer.initiator);
  key += '\0';
  key += peer.network;
  return key;
}

Nanos delay_of(unsigned failures) {
  if (failures <= limits::kFreeLoginFailures) return 0;
  const unsigned doublings = std::min(failures - limits::kFreeLoginFailures - 1, 16u);
  return std::min(limits::kRefusalDelayLeast << doublings, limits::kRefusalDelayMost);
}

}  // namespace

bool LoginThrottle::Slots::free(Nanos now) const {
  return std::any_of(busy_until.begin(), busy_until.end(), [now](Nanos t) { return t <= now; });
}

void LoginThrottle::Slots::take(Nanos now, Nanos until) {
  const auto at =
      std::find_if(busy_until.begin(), busy_until.end(), [now](Nanos t) { return t <= now; });
  if (at != busy_until.end()) *at = until;
}

bool LoginThrottle::may_try(const LoginPeer& peer, Nanos now) {
  const std::lock_guard lock(mutex_);
  const Failing* from = networks_.find(peer.network);
  if (from == nullptr) return true;
  // A host that was here before is not refused for what others do, at its address or by its name.
  if (const Slots* own = proven_.find(pair_key(peer))) return own->free(now);
  if (!from->slots.free(now)) return false;
  const Failing* by = initiators_.find(peer.initiator);
  return by == nullptr || by->slots.free(now) || now - from->evaluated >= limits::kOwnLoginTry;
}

unsigned LoginThrottle::add_failure(Failing* of, Nanos now) {
  if (now - of->last > limits::kFailuresForgotten) of->failures = 0;
  of->last = now;
  return ++of->failures;
}

Nanos LoginThrottle::failed(const LoginPeer& peer, bool evaluated, Nanos now) {
  const std::lock_guard lock(mutex_);
  Failing& from = networks_.use(peer.network);
  Failing& by = initiators_.use(peer.initiator);
  const unsigned failures = std::max(add_failure(&from, now), add_failure(&by, now));
  const Nanos delay = delay_of(failures);
  if (!evaluated) return delay;
  from.evaluated = now;
  Slots* own = proven_.find(pair_key(peer));
  for (Slots* slots : {&from.slots, &by.slots, own}) {
    if (slots != nullptr) slots->take(now, now + delay);
  }
  return delay;
}

void LoginThrottle::succeeded(const LoginPeer& peer) {
  const std::lock_guard lock(mutex_);
  proven_.use(pair_key(peer));
}

}  // namespace sluice::iscsi
