// What a nexus has to do with other gateways, and with time.
#include <algorithm>
#include <utility>

#include "lun/forwarding.h"
#include "lun/nexus.h"
#include "lun/placing.h"

namespace sluice::lun {

std::shared_ptr<Link> Nexus::open_link(uint16_t owner) const {
  for (const auto& [gateway, link] : links_) {
    if (gateway == owner && !link->ended()) return link;
  }
  return nullptr;
}

std::shared_ptr<Link> Nexus::link_to(uint16_t owner) {
  if (std::shared_ptr<Link> link = open_link(owner)) return link;
  if (!lane_.forwarding || owner == 0 || closed_) return nullptr;
  std::shared_ptr<Link> link = lane_.forwarding->open(shared_from_this(), owner);
  const auto last = std::find_if(links_.begin(), links_.end(),
                                 [owner](const auto& entry) { return entry.first == owner; });
  if (last != links_.end()) {
    // It still answers what it has, in its own time: nobody waits for its end. Then it goes at the
    // top of the stack, not underneath its own functions.
    const std::shared_ptr<Link> old = std::move(last->second);
    links_.erase(last);
    old->close(true, [old, lane = lane_] { lane.reactors->post(lane.reactor, [old] {}); });
  }
  if (link) links_.emplace_back(owner, link);
  return link;
}

void Nexus::tick() {
  if ((held == 0 && starved_.empty() && owner_resets_.empty()) || closed_) return;
  const std::shared_ptr<Nexus> alive = shared_from_this();
  owner_resets_.tick();
  for (const auto& go_on : std::exchange(starved_, {})) go_on();
  std::vector<std::shared_ptr<Itl>> all = retired_;
  for (Itl* itl : itls()) all.push_back(itl->shared_from_this());
  for (const auto& itl : all) {
    if (itl->held != 0) lun::tick(*itl);
  }
}

}  // namespace sluice::lun
