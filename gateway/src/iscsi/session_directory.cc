#include "iscsi/session_directory.h"

#include <algorithm>

namespace sluice::iscsi {

void SessionDirectory::claim(const SessionKey& key, ConnectionHandle who, uint16_t retained_tsih,
                             uint16_t cid, const NexusIncarnation& nexus) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[key];
  slot.waiting.push_back({who, retained_tsih, cid, nexus});
  if (slot.tsih == 0) {
    grant_locked(slot);
  } else if (slot.waiting.size() == 1) {
    reactors_.post(slot.holder.reactor, [this, h = slot.holder] { callbacks_.end(h); });
  }
}

void SessionDirectory::grant_locked(Slot& slot) {
  const Claim claim = slot.waiting.front();
  slot.waiting.pop_front();
  slot.holder = claim.who;
  slot.cid = claim.cid;
  slot.nexus = claim.nexus;
  if (claim.retained_tsih != 0 && tsihs_.count(claim.retained_tsih) == 0) {
    slot.tsih = claim.retained_tsih;
    tsihs_[slot.tsih] = true;
  } else {
    slot.tsih = take_tsih_locked();
  }
  reactors_.post(claim.who.reactor,
                 [this, h = claim.who, t = slot.tsih] { callbacks_.granted(h, t); });
  // If another claim already waits for this nexus, this connection must end again; it is notified
  // after the grant.
  if (!slot.waiting.empty()) {
    reactors_.post(claim.who.reactor, [this, h = claim.who] { callbacks_.end(h); });
  }
}

void SessionDirectory::release(const SessionKey& key, ConnectionHandle who) {
  const std::lock_guard lock(mutex_);
  const auto it = slots_.find(key);
  if (it == slots_.end()) return;
  Slot& slot = it->second;
  if (slot.tsih != 0 && slot.holder == who) {
    tsihs_.erase(slot.tsih);
    slot.tsih = 0;
    if (!slot.waiting.empty()) {
      grant_locked(slot);
    } else {
      slots_.erase(it);
    }
    return;
  }
  std::erase_if(slot.waiting, [&](const Claim& c) { return c.who == who; });
}

uint16_t SessionDirectory::take_tsih() {
  const std::lock_guard lock(mutex_);
  return take_tsih_locked();
}

uint16_t SessionDirectory::take_tsih_locked() {
  // Connections are limited far below 65535, so a free one is always found.
  while (next_tsih_ == 0 || tsihs_.count(next_tsih_) != 0) ++next_tsih_;
  tsihs_[next_tsih_] = true;
  return next_tsih_++;
}

void SessionDirectory::give_back_tsih(uint16_t tsih) {
  const std::lock_guard lock(mutex_);
  tsihs_.erase(tsih);
}

bool SessionDirectory::matches(const SessionKey& key, uint16_t tsih) const {
  const std::lock_guard lock(mutex_);
  const auto it = slots_.find(key);
  return it != slots_.end() && it->second.tsih == tsih;
}

uint16_t SessionDirectory::cid(const SessionKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = slots_.find(key);
  return it == slots_.end() ? uint16_t{0} : it->second.cid;
}

bool SessionDirectory::has_session(const std::string& initiator, const std::array<uint8_t, 6>& isid,
                                   const std::string& target) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(slots_.begin(), slots_.end(), [&](const auto& slot) {
    const SessionKey& key = slot.first;
    return key.initiator == initiator && key.isid == isid && key.target == target;
  });
}

unsigned SessionDirectory::sessions_of(const std::vector<std::string>& initiators,
                                       const SessionKey& except) const {
  const std::lock_guard lock(mutex_);
  return static_cast<unsigned>(std::count_if(slots_.begin(), slots_.end(), [&](const auto& slot) {
    const SessionKey& key = slot.first;
    return key != except &&
           std::find(initiators.begin(), initiators.end(), key.initiator) != initiators.end();
  }));
}

unsigned SessionDirectory::limit_reached(const SessionKey& except) const {
  const unsigned most = most_sessions_;
  if (most == 0) return 0;
  const std::lock_guard lock(mutex_);
  const auto others = std::count_if(slots_.begin(), slots_.end(), [&](const auto& slot) {
    return slot.first.gateway == 0 && slot.first != except;
  });
  return others >= static_cast<long>(most) ? most : 0;
}

void SessionDirectory::notify_holders(const std::string& target,
                                      const std::function<void(ConnectionHandle)>& notify) {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, slot] : slots_) {
    if (key.target != target || slot.tsih == 0) continue;
    reactors_.post(slot.holder.reactor, [notify, h = slot.holder] { notify(h); });
  }
}

void SessionDirectory::end_all(const std::string& target) {
  notify_holders(target, callbacks_.end);
}

void SessionDirectory::review_all(const std::string& target) {
  notify_holders(target, callbacks_.review);
}

void SessionDirectory::review_gateway(uint16_t gateway) {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, slot] : slots_) {
    if (key.gateway != gateway || slot.tsih == 0) continue;
    reactors_.post(slot.holder.reactor, [this, h = slot.holder] { callbacks_.review(h); });
  }
}

bool SessionDirectory::outdated(const SessionKey& key, const NexusIncarnation& nexus) const {
  const std::lock_guard lock(mutex_);
  const auto it = slots_.find(key);
  if (it == slots_.end()) return false;
  const auto later = [&](const NexusIncarnation& other) {
    return other.gateway == nexus.gateway && other.nexus > nexus.nexus;
  };
  const auto& waiting = it->second.waiting;
  return later(it->second.nexus) || std::any_of(waiting.begin(), waiting.end(),
                                                [&](const Claim& c) { return later(c.nexus); });
}

}  // namespace sluice::iscsi
