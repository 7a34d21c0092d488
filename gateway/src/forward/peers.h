// The gateways that share path sets with this one: where they are and whether they are fenced, as
// the control plane says; and how this gateway finds each (DESIGN R1).
//
// Threads: any. Callbacks run on the thread whose call or finding it was, outside the lock.
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
  kUnknown,    // nothing found out yet
  kConnected,  // its process answers
  kRefused,    // reset or refused: no such process any more
  kSilent,     // nothing heard for limits::kPeerSilence or more, told in whole seconds
};

class Peers {
 public:
  struct Finding {
    Reach reach = Reach::kUnknown;
    uint32_t silent_ms = 0;  // of kSilent, when it was found
    bool operator==(const Finding&) const = default;
  };
  struct Callbacks {
    // The book changed; `fenced` are the peers that are newly fenced.
    std::function<void(const std::vector<Peer>& fenced)> on_change;
    // How a peer is found has changed. To the control plane.
    std::function<void(uint16_t number, const std::string& incarnation, Reach, uint32_t silent_ms)>
        on_reach;
  };
  void set_on_change(std::function<void(const std::vector<Peer>& fenced)> f);
  void set_on_reach(std::function<void(uint16_t, const std::string&, Reach, uint32_t silent_ms)> f);

  // Replaces the book. Peers beyond limits::kMaxPeers are left out.
  void set(const std::vector<Peer>& peers);
  std::vector<Peer> all() const;
  std::optional<Peer> find(uint16_t number) const;

  // Of this incarnation; forgotten with it.
  void found(uint16_t number, const std::string& incarnation, Reach reach, uint32_t silent_ms);
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
