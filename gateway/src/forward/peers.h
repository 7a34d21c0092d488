// The gateways that share path sets with this one: their addresses and whether they are fenced,
// from the control plane; and how this gateway reaches each (DESIGN R1).
//
// Threads: any. Callbacks run on the calling thread, without the lock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace sluice::forward {

struct Peer {
  uint16_t number = 0;
  std::string incarnation;
  std::string address;  // of its forwarding port: "ip:port" or "[ip6]:port"
  bool fenced = false;  // this incarnation
  std::string node;
  bool operator==(const Peer&) const = default;
};

enum class Reach : uint8_t {
  kUnknown,    // no result yet
  kConnected,  // its process answers
  kRefused,    // reset or refused: that process no longer exists
  kSilent,     // no input for at least limits::kPeerSilence; reported in whole seconds
};

class Peers {
 public:
  struct Finding {
    Reach reach = Reach::kUnknown;
    uint32_t silent_ms = 0;  // for kSilent, at the time of the result
    // For kConnected: why the peer refuses this gateway's login, so that nothing can be forwarded
    // to it. Its process answers, so this never counts towards its death (DESIGN R1). Empty:
    // accepted.
    std::string refusal;
    bool operator==(const Finding&) const = default;
  };
  using OnReach =
      std::function<void(uint16_t number, const std::string& incarnation, const Finding&)>;
  struct Callbacks {
    // The list changed; `fenced` contains the newly fenced peers.
    std::function<void(const std::vector<Peer>& fenced)> on_change;
    // The reachability of a peer changed; reported to the control plane.
    OnReach on_reach;
  };
  void set_on_change(std::function<void(const std::vector<Peer>& fenced)> f);
  void set_on_reach(OnReach f);

  // Replaces the list. Peers beyond limits::kMaxPeers are omitted.
  void set(const std::vector<Peer>& peers);
  std::vector<Peer> all() const;
  std::optional<Peer> find(uint16_t number) const;

  // Records a result for this incarnation; removed with the incarnation.
  void found(uint16_t number, const std::string& incarnation, const Finding& finding);
  Finding finding(uint16_t number) const;

 private:
  mutable std::mutex mutex_;
  Callbacks callbacks_;
  struct Entry {
    Peer peer;
    Finding finding;
  };
  std::map<uint16_t, Entry> book_;
};

}  // namespace sluice::forward
