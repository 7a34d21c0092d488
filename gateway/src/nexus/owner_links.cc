#include "nexus/owner_links.h"

#include <algorithm>

#include "commands/command_context.h"
#include "nexus/forwarding.h"

namespace sluice::lun {

std::shared_ptr<Link> OwnerLinks::open_link(uint16_t owner) const {
  for (const auto& [gateway, link] : links_) {
    if (gateway == owner && !link->ended()) return link;
  }
  return nullptr;
}

std::shared_ptr<Link> OwnerLinks::link_to(uint16_t owner, const std::shared_ptr<Nexus>& nexus) {
  if (std::shared_ptr<Link> link = open_link(owner)) return link;
  const ReactorContext& context = context_.reactor_context();
  if (!context.forwarding || owner == 0 || context_.closed()) return nullptr;
  std::shared_ptr<Link> link = context.forwarding->open(nexus, owner);
  const auto last = std::find_if(links_.begin(), links_.end(),
                                 [owner](const auto& entry) { return entry.first == owner; });
  if (last != links_.end()) {
    // It still answers its commands; nothing waits for its end. It is destroyed in a posted task,
    // not within its own functions.
    const std::shared_ptr<Link> old = std::move(last->second);
    links_.erase(last);
    old->close(true, [old, context] { context.reactors->post(context.reactor, [old] {}); });
  }
  if (link) links_.emplace_back(owner, link);
  return link;
}

void OwnerLinks::close(bool lost, const std::function<void()>& begin,
                       const std::function<void()>& done) {
  for (size_t i = 0; i < links_.size(); ++i) {
    begin();
    links_[i].second->close(lost, done);
  }
}

}  // namespace sluice::lun
