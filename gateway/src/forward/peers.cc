#include "forward/peers.h"

#include "base/limits.h"

namespace sluice::forward {

void Peers::set_on_change(std::function<void(const std::vector<Peer>&)> f) {
  const std::lock_guard lock(mutex_);
  callbacks_.on_change = std::move(f);
}

void Peers::set_on_reach(OnReach f) {
  const std::lock_guard lock(mutex_);
  callbacks_.on_reach = std::move(f);
}

void Peers::set(const std::vector<Peer>& peers) {
  std::vector<Peer> fenced;
  std::function<void(const std::vector<Peer>&)> tell;
  {
    const std::lock_guard lock(mutex_);
    std::map<uint16_t, Entry> next;
    for (const Peer& peer : peers) {
      if (next.size() == limits::kMaxPeers) break;
      Entry entry{peer, {}};
      const auto known = book_.find(peer.number);
      const bool same = known != book_.end() && known->second.peer.incarnation == peer.incarnation;
      if (same) entry.finding = known->second.finding;
      if (peer.fenced && !(same && known->second.peer.fenced)) fenced.push_back(peer);
      next[peer.number] = std::move(entry);
    }
    book_ = std::move(next);
    tell = callbacks_.on_change;
  }
  if (tell) tell(fenced);
}

std::vector<Peer> Peers::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Peer> peers;
  for (const auto& [number, entry] : book_) peers.push_back(entry.peer);
  return peers;
}

std::optional<Peer> Peers::find(uint16_t number) const {
  const std::lock_guard lock(mutex_);
  const auto it = book_.find(number);
  if (it == book_.end()) return std::nullopt;
  return it->second.peer;
}

void Peers::found(uint16_t number, const std::string& incarnation, const Finding& finding) {
  OnReach report;
  {
    const std::lock_guard lock(mutex_);
    const auto it = book_.find(number);
    if (it == book_.end() || it->second.peer.incarnation != incarnation) return;
    if (it->second.finding == finding) return;
    it->second.finding = finding;
    report = callbacks_.on_reach;
  }
  if (report) report(number, incarnation, finding);
}

Peers::Finding Peers::finding(uint16_t number) const {
  const std::lock_guard lock(mutex_);
  const auto it = book_.find(number);
  return it == book_.end() ? Finding{} : it->second.finding;
}

}  // namespace sluice::forward
