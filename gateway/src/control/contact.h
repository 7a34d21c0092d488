// Whom this gateway reaches: the control plane, and the owners of volumes. Without both, commands
// for a volume that it forwards cannot be executed, and it learns of no other owner. Hosts have to
// use other paths then (DESIGN R11).
//
// Threads: any.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "base/clock.h"
#include "control/wire.h"

namespace sluice::control {

class Contact {
 public:
  // There is no stream at the start.
  explicit Contact(Nanos now) : stream_lost_(now) {}

  void stream_opened();
  void stream_lost(Nanos now);
  // How this gateway reaches its peers now. A peer that refuses its login is not reached; a peer
  // that `peers` does not name is.
  void reached(const std::vector<wire::PeerObserved>& peers);

  // No stream for limits::kCutOff, and the gateway of this number is not reached.
  bool cut_off_from(uint16_t owner, Nanos now) const;

 private:
  mutable std::mutex mutex_;
  std::optional<Nanos> stream_lost_;  // nullopt: there is a stream
  std::set<uint16_t> lost_peers_;
};

}  // namespace sluice::control
