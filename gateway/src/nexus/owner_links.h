// The links of one I_T nexus to the gateways that own its units.
//
// Threads: the nexus's reactor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::lun {

class Link;
class Nexus;
class NexusContext;

class OwnerLinks {
 public:
  using List = std::vector<std::pair<uint16_t, std::shared_ptr<Link>>>;  // by owner

  explicit OwnerLinks(const NexusContext& context) : context_(context) {}

  // The link to a gateway that owns units; opens one if there is none, or if it has ended. nullptr:
  // that gateway is unknown.
  std::shared_ptr<Link> link_to(uint16_t owner, const std::shared_ptr<Nexus>& nexus);
  // an existing link that has not ended, or nullptr
  std::shared_ptr<Link> open_link(uint16_t owner) const;
  // Closes each link with Link::close(). `begin` is called before each, `done` after it.
  void close(bool lost, const std::function<void()>& begin, const std::function<void()>& done);
  List take() { return std::exchange(links_, {}); }

 private:
  const NexusContext& context_;
  List links_;
};

}  // namespace sluice::lun
